//! PostgreSQL, MariaDB, OpenLDAP and SQLite with folders and ports of their own, and the same people in each.
//!
//! `tim@a.test` and `info@a.test` are the account `tim`, `ann@a.test` is `ann`, who may have 4,096 bytes, `team@a.test` is both. Their
//! password is `secret`.

use std::net::TcpStream;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};

use tempfile::TempDir;

use super::tls::Certificate;
use super::{free_port, wait_for};

/// As Dovecot's `doveadm pw` makes them, of `secret`.
const HASHES: [&str; 2] = [
    "{BLF-CRYPT}$2y$05$ZY/IEgPJjHdbRNGIg8oEzORs9Xl65bPF./zjwrU1y3UINkfUqrYDG",
    "{SSHA512}I95pByobPWzRa6mobn27ldPBTA4Al/BEt/RV6+ToMkPWcKPo/Zzm+vYyRFdJPFAxj0FYeGj4AJ9yV6+WPIEkNg2p9iM=",
];

/// Kind of database.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Kind {
    Postgresql,
    Mariadb,
    Ldap,
    Sqlite,
}

pub struct Database {
    kind: Kind,
    folder: TempDir,
    port: u16,
    child: Option<Child>,
}

impl Database {
    /// Starts one, if it is installed and we may.
    pub fn start(kind: Kind) -> Option<Database> {
        let is_root = rustix::process::geteuid().is_root();
        let program = match kind {
            Kind::Postgresql => postgresql("initdb"),
            Kind::Mariadb => "/usr/sbin/mariadbd".into(),
            Kind::Ldap => "/usr/sbin/slapd".into(),
            Kind::Sqlite => "/usr/bin/python3".into(),
        };
        if !is_root || !program.exists() {
            eprintln!("skipped: {kind:?} is not installed, or we are not root");
            return None;
        }
        let folder = tempfile::tempdir().unwrap();
        let mut database = Database { kind, folder, port: free_port(), child: None };
        Certificate::of("localhost").store(database.folder.path(), "server");
        run(&format!("chmod 755 {0} && chmod 644 {0}/server.key", database.at()));
        database.make();
        Some(database)
    }

    fn at(&self) -> String {
        self.folder.path().display().to_string()
    }

    /// `[[lookup]]` for it, and `[tls]`; `more` is for its table.
    pub fn table(&self, more: &str) -> String {
        let (at, port) = (self.at(), self.port);
        let query = "query = \"SELECT account AS \\\"user\\\", password, quota FROM people WHERE address = '%s'\"";
        let own = match self.kind {
            Kind::Postgresql => {
                format!("servers = ['postgresql://sluice@localhost:{port}/mail']\npassword = 'pw'\ntls = true\n{query}")
            }
            Kind::Mariadb => format!(
                "servers = ['mysql://sluice@localhost:{port}/mail']\npassword = 'pw'\ntls = true\n{}",
                query.replace("\\\"", "`")
            ),
            Kind::Ldap => format!(
                "servers = ['ldap://localhost:{port}']\ntls = true\nbase = 'ou=people,dc=a,dc=test'\n\
                 filter = '(&(objectClass=inetOrgPerson)(mail=%s))'\nbind_dn = 'cn=sluice,dc=a,dc=test'\npassword = 'pw'\n\
                 attributes = {{ user = 'uid', quota = 'employeeNumber' }}\nbind = true"
            ),
            Kind::Sqlite => format!("servers = ['sqlite:{at}/people.db']\n{query}"),
        };
        format!("[tls]\nauthorities = '{at}/server.crt'\n[[lookup]]\nname = 'people'\n{own}\n{more}\n")
    }

    /// The URL of PostgreSQL.
    pub fn url(&self) -> String {
        format!("postgresql://sluice@localhost:{}/mail", self.port)
    }

    /// The file with the authority of its certificate.
    pub fn authorities(&self) -> String {
        format!("{}/server.crt", self.at())
    }

    /// Runs a statement in the database, as its superuser; what it says.
    pub fn say(&self, statement: &str) -> String {
        self.postgres("mail", statement)
    }

    /// Lets its user make schemas.
    pub fn permit_schemas(&self) {
        self.postgres("mail", "GRANT CREATE ON DATABASE mail TO sluice");
    }

    fn make(&mut self) {
        let at = self.at();
        match self.kind {
            Kind::Postgresql => {
                let initdb = postgresql("initdb");
                run(&format!("install -d -o postgres {at}/data"));
                run(&format!("runuser -u postgres -- {} -D {at}/data -A trust -N", initdb.display()));
                run(&format!("install -o postgres -m 600 {at}/server.crt {at}/server.key {at}/data"));
                let hba = "local all all trust\nhostssl all all 127.0.0.1/32 scram-sha-256\nhostssl all all ::1/128 scram-sha-256\n";
                std::fs::write(format!("{at}/data/pg_hba.conf"), hba).unwrap();
                self.begin();
                self.postgres("postgres", "CREATE USER sluice PASSWORD 'pw'");
                self.postgres("postgres", "CREATE DATABASE mail");
                self.postgres("mail", &format!("{} GRANT SELECT ON people TO sluice", people("varchar(255)")));
            }
            Kind::Mariadb => {
                run(&format!("install -d -o mysql {at}/data {at}/run"));
                run(&format!("mariadb-install-db --no-defaults --user=mysql --datadir={at}/data --skip-test-db"));
                self.begin();
                let text = format!(
                    "CREATE DATABASE mail CHARACTER SET utf8mb4 COLLATE utf8mb4_bin; USE mail; {} \
                     CREATE USER sluice@'%' IDENTIFIED BY 'pw' REQUIRE SSL; GRANT SELECT ON mail.* TO sluice@'%';",
                    people("varchar(255)")
                );
                std::fs::write(format!("{at}/people.sql"), text).unwrap();
                run(&format!("mariadb --no-defaults --socket={at}/run/socket < {at}/people.sql"));
            }
            Kind::Ldap => {
                std::fs::create_dir(format!("{at}/data")).unwrap();
                let config = format!(
                    "include /etc/ldap/schema/core.schema\ninclude /etc/ldap/schema/cosine.schema\n\
                     include /etc/ldap/schema/inetorgperson.schema\npidfile {at}/pid\nmodulepath /usr/lib/ldap\n\
                     moduleload back_mdb\nTLSCertificateFile {at}/server.crt\nTLSCertificateKeyFile {at}/server.key\n\
                     security ssf=128\nallow bind_v2\ndatabase mdb\nsuffix dc=a,dc=test\nrootdn cn=admin,dc=a,dc=test\nrootpw pw\n\
                     directory {at}/data\naccess to attrs=userPassword by anonymous auth by * none\n\
                     access to * by dn.exact=cn=sluice,dc=a,dc=test read by * none\n"
                );
                std::fs::write(format!("{at}/slapd.conf"), config).unwrap();
                std::fs::write(format!("{at}/people.ldif"), LDIF).unwrap();
                run(&format!("slapadd -f {at}/slapd.conf -l {at}/people.ldif"));
                self.begin();
            }
            Kind::Sqlite => {
                let script = "import sqlite3, sys; sqlite3.connect(sys.argv[1]).executescript(sys.argv[2])";
                let made =
                    Command::new("python3").args(["-c", script, &format!("{at}/people.db"), &people("text")]).status();
                assert!(made.unwrap().success());
            }
        }
    }

    fn postgres(&self, database: &str, text: &str) -> String {
        let (at, port) = (self.at(), self.port);
        let mut words = vec![
            "-u",
            "postgres",
            "--",
            "psql",
            "-qAt",
            "-v",
            "ON_ERROR_STOP=1",
            "-h",
            &at,
            "-d",
            database,
            "-c",
            text,
        ];
        let port = port.to_string();
        words.extend(["-p", &port]);
        let done = Command::new("runuser").args(words).stderr(Stdio::inherit()).output().unwrap();
        assert!(done.status.success());
        String::from_utf8(done.stdout).unwrap()
    }

    /// Starts its server, if it has one, and waits until it answers.
    pub fn begin(&mut self) {
        let (at, port) = (self.at(), self.port);
        let line = match self.kind {
            Kind::Postgresql => format!(
                "exec setpriv --reuid postgres --regid postgres --init-groups {} -D {at}/data -p {port} -k {at}/data -c listen_addresses=localhost -c ssl=on",
                postgresql("postgres").display()
            ),
            Kind::Mariadb => format!(
                "exec mariadbd --no-defaults --user=mysql --datadir={at}/data --socket={at}/run/socket --port={port} --bind-address=localhost --ssl-cert={at}/server.crt --ssl-key={at}/server.key"
            ),
            Kind::Ldap => format!("exec slapd -d 0 -f {at}/slapd.conf -h ldap://localhost:{port}/"),
            Kind::Sqlite => return std::fs::rename(format!("{at}/away.db"), format!("{at}/people.db")).unwrap(),
        };
        let log = std::fs::File::create(format!("{at}/log")).unwrap();
        let mut command = Command::new("sh");
        command.args(["-c", &line]).stdout(log.try_clone().unwrap()).stderr(log);
        self.child = Some(command.spawn().unwrap());
        wait_for(|| TcpStream::connect(("127.0.0.1", port)).ok(), "the database");
        if self.kind == Kind::Postgresql {
            run(&format!("ln -sf {at}/data/.s.PGSQL.{port} {at}/.s.PGSQL.{port}"));
            let ready =
                format!("runuser -u postgres -- psql -h {at} -p {port} -d postgres -c 'SELECT 1' >/dev/null 2>&1");
            wait_for(
                || Command::new("sh").args(["-c", &ready]).status().unwrap().success().then_some(()),
                "PostgreSQL",
            );
        }
    }

    /// Takes it away.
    pub fn end(&mut self) {
        let at = self.at();
        if self.kind == Kind::Sqlite {
            std::fs::rename(format!("{at}/people.db"), format!("{at}/away.db")).unwrap();
        }
        if let Some(mut child) = self.child.take() {
            // SIGINT ends sessions of PostgreSQL, and MariaDB does not know it.
            let signal = if self.kind == Kind::Postgresql { "INT" } else { "TERM" };
            run(&format!("kill -{signal} {}", child.id()));
            child.wait().unwrap();
        }
    }
}

impl Drop for Database {
    fn drop(&mut self) {
        if let Some(mut child) = self.child.take() {
            let _ = Command::new("kill").args(["-QUIT", &child.id().to_string()]).status();
            let _ = child.kill();
            let _ = child.wait();
        }
    }
}

fn people(text: &str) -> String {
    let [bcrypt, ssha] = HASHES;
    format!(
        "CREATE TABLE people (address {text}, account {text}, password {text}, quota bigint);\
         INSERT INTO people VALUES ('tim@a.test', 'tim', '{bcrypt}', NULL), ('info@a.test', 'tim', '{bcrypt}', NULL),\
         ('ann@a.test', 'ann', '{ssha}', 4096), ('team@a.test', 'tim', '{bcrypt}', NULL), ('team@a.test', 'ann', '{ssha}', 4096);"
    )
}

const LDIF: &str = "dn: dc=a,dc=test
objectClass: dcObject
objectClass: organization
dc: a
o: a

dn: cn=sluice,dc=a,dc=test
objectClass: organizationalRole
objectClass: simpleSecurityObject
cn: sluice
userPassword: pw

dn: ou=people,dc=a,dc=test
objectClass: organizationalUnit
ou: people

dn: uid=tim,ou=people,dc=a,dc=test
objectClass: inetOrgPerson
uid: tim
cn: Tim
sn: Tim
mail: tim@a.test
mail: info@a.test
mail: team@a.test
userPassword: secret

dn: uid=ann,ou=people,dc=a,dc=test
objectClass: inetOrgPerson
uid: ann
cn: Ann
sn: Ann
mail: ann@a.test
mail: team@a.test
employeeNumber: 4096
userPassword: secret
";

/// A program of the newest PostgreSQL that is installed.
pub fn postgresql(name: &str) -> PathBuf {
    let versions = std::fs::read_dir("/usr/lib/postgresql").into_iter().flatten().flatten();
    let newest = versions.map(|version| version.path()).max();
    newest.unwrap_or_default().join("bin").join(name)
}

pub fn run(line: &str) {
    let done = Command::new("sh").args(["-c", line]).current_dir(Path::new("/")).output().unwrap();
    assert!(done.status.success(), "{line}: {}", String::from_utf8_lossy(&done.stderr));
}
