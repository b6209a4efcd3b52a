"""The scanners behind today's gateways: clamd, amavisd and rspamd, each with all of its files under the bench's folder.

Set to be strong: clamd on a UNIX socket with 12 threads and no result cache (else equal mails are scanned once);
amavisd with 4 children that live for 1000 mails, no external unpackers, no header checks, 20 of them behind its milter,
which cannot wait its turn in a queue; rspamd with 2 workers, local
rules only, no Redis. All of them talk over UNIX sockets, which saves about 45 ms a mail against loopback TCP.
"""

import os
import shutil

from processes import Program
from sockets import is_open, is_socket

CLAMD = """LocalSocket {socket}
LocalSocketMode 666
DatabaseDirectory {database}
LogFile {folder}/log
LogFileMaxSize 0
User root
Foreground yes
MaxThreads 12
MaxQueue 400
MaxConnectionQueueLength 200
StreamMaxLength 200M
MaxScanSize 4000M
MaxFileSize 2000M
MaxScanTime 0
MaxRecursion 20
DisableCache yes
ConcurrentDatabaseReload no
SelfCheck 0
"""


def start_clamd(folder, database):
    """Starts clamd; its socket is `folder`/socket."""
    os.makedirs(folder)
    socket = f"{folder}/socket"
    _write(f"{folder}/clamd.conf", CLAMD.format(socket=socket, database=database, folder=folder))
    program = Program("clamd", ["/usr/sbin/clamd", "-c", f"{folder}/clamd.conf"], f"{folder}/start.log")
    return program.wait_until(lambda: is_socket(socket))


AMAVISD = r"""use strict;
$max_servers = {children}; $max_requests = 1000; $child_timeout = 300;
$daemon_user = 'amavis'; $daemon_group = 'amavis';
$mydomain = 'bench.test'; $myhostname = 'gateway.bench.test';
$MYHOME = '{folder}'; $TEMPBASE = '{folder}/work'; $ENV{{TMPDIR}} = $TEMPBASE;
$db_home = '{folder}/db'; $QUARANTINEDIR = '{folder}/quarantine';
$pid_file = '{folder}/pid'; $lock_file = '{folder}/lock';
$DO_SYSLOG = 0; $LOGFILE = '{folder}/log'; $log_level = 0;
$enable_db = 0; $enable_global_cache = 0; $enable_dkim_verification = 0; $enable_dkim_signing = 0;
$virus_check_negative_ttl = 0; $virus_check_positive_ttl = 0;
$unix_socketname = '{folder}/socket'; $unix_socket_mode = 0666;
$policy_bank{{'SOCKET'}} = {{ protocol => '{protocol}' }}; $interface_policy{{'SOCK'}} = 'SOCKET';
$inet_socket_bind = '127.0.0.1'; $inet_socket_port = {port};
@inet_acl = qw(127.0.0.0/8); @mynetworks = qw(127.0.0.0/8);
$forward_method = 'smtp:[127.0.0.1]:{back}'; $notify_method = $forward_method;
@local_domains_maps = (1);
@bypass_virus_checks_maps = (0); @bypass_spam_checks_maps = (1);
@bypass_banned_checks_maps = (1); @bypass_header_checks_maps = (1);
$MAXLEVELS = 14; $MAXFILES = 3000; $MIN_EXPANSION_QUOTA = 100*1024; $MAX_EXPANSION_QUOTA = 500*1024*1024;
$final_virus_destiny = {destiny}; $virus_quarantine_to = undef; $virus_admin = undef; $warnvirusrecip = 0;
@keep_decoded_original_maps = (new_RE(qr'^MAIL-UNDECIPHERABLE$'));
@decoders = (['mail', \&do_mime_decode], ['gz', \&do_uncompress, 'gzip -d']);
@av_scanners = (['ClamAV', \&ask_daemon, ["CONTSCAN {{}}\n", '{clamd}'],
  qr/\bOK$/m, qr/\bFOUND$/m, qr/^.*?: (?!Infected Archive)(.*) FOUND$/m]);
@av_scanners_backup = ();
1;
"""


def start_amavisd(folder, port, back, clamd):
    """Starts amavisd; it takes mail over LMTP on `folder`/socket and gives it back to SMTP port `back`."""
    return _start_amavisd(folder, port=port, back=back, clamd=clamd, children=4, protocol="LMTP", destiny="D_DISCARD")


def start_amavisd_milter(folder, port, back, clamd):
    """Starts amavisd and in front of it amavisd-milter, whose socket is `folder`/milter; both programs."""
    children = 20
    amavisd = _start_amavisd(folder, port=port, back=back, clamd=clamd, children=children, protocol="AM.PDP",
                             destiny="D_REJECT")
    # What it writes amavisd reads, so it runs as the same user.
    command = ["setpriv", "--reuid=amavis", "--regid=amavis", "--init-groups", "/usr/sbin/amavisd-milter", "-f",
               "-s", f"unix:{folder}/milter", "-S", f"{folder}/socket", "-w", f"{folder}/work",
               "-m", str(children), "-p", f"{folder}/milter.pid"]
    milter = Program("amavisd-milter", command, f"{folder}.milter.log")
    milter.wait_until(lambda: is_socket(f"{folder}/milter"))
    os.chmod(f"{folder}/milter", 0o666)
    return amavisd, milter


def _start_amavisd(folder, **settings):
    for name in ("", "/work", "/db", "/quarantine"):
        os.makedirs(folder + name)
        shutil.chown(folder + name, "amavis", "amavis")
    # amavisd-milter refuses one that others can read.
    os.chmod(f"{folder}/work", 0o750)
    # It refuses a configuration that its own user could change.
    configuration = f"{folder}.conf"
    _write(configuration, AMAVISD.format(folder=folder, **settings))
    binary = next(path for path in ("/usr/sbin/amavisd", "/usr/sbin/amavisd-new") if os.path.exists(path))
    program = Program("amavisd", [binary, "-c", configuration, "foreground"], f"{folder}.start.log")
    return program.wait_until(lambda: is_open(settings["port"]))


RSPAMD_OFF = ("rbl surbl spf dkim dkim_signing dmarc arc asn fuzzy_check phishing mx_check greylist ratelimit neural "
              "replies history_redis url_redirector hfilter mid").split()

PROXY = """milter = yes; timeout = 120s; count = 2;
upstream "local" {{ default = yes; self_scan = yes; }}
bind_socket = "127.0.0.1:{port}"; bind_socket = "{folder}/run/milter mode=0666";
"""

OPTIONS = """dns {{ nameserver = ["127.0.0.1:{dns}"]; timeout = 0.05s; retransmits = 1; sockets = 4; }}
local_addrs = "10.255.255.0/24"; allow_raw_input = true;
"""

ANTIVIRUS = """clamav {{
  type = "clamav"; symbol = "CLAM_VIRUS"; action = "reject"; servers = "{clamd}"; timeout = 60; log_clean = false;
  scan_mime_parts = true; scan_text_mime = false; scan_image_mime = false; max_size = 50000000;
}}
"""


def start_rspamd(folder, ports, clamd):
    """Starts rspamd; its milter is `folder`/run/milter."""
    for name in ("local.d", "override.d", "db", "run", "log"):
        os.makedirs(f"{folder}/{name}")
    for name in ("db", "run", "log"):
        shutil.chown(f"{folder}/{name}", "_rspamd", "_rspamd")
    for name, text in _rspamd_settings(folder, ports, clamd).items():
        _write(f"{folder}/local.d/{name}", text + "\n")
    variables = {"LOCAL_CONFDIR": folder, "DBDIR": f"{folder}/db", "RUNDIR": f"{folder}/run", "LOGDIR": f"{folder}/log"}
    command = ["/usr/bin/rspamd", "-f", "-u", "_rspamd", "-g", "_rspamd", "-c", "/etc/rspamd/rspamd.conf"]
    command += [f"--var={name}={value}" for name, value in variables.items()]
    program = Program("rspamd", command, f"{folder}/start.log")
    return program.wait_until(lambda: is_socket(f"{folder}/run/milter"))


def _rspamd_settings(folder, ports, clamd):
    settings = {f"{module}.conf": "enabled = false;" for module in RSPAMD_OFF}
    settings |= {
        "worker-proxy.inc": PROXY.format(port=ports["rspamd_milter"], folder=folder),
        "worker-normal.inc": f'bind_socket = "127.0.0.1:{ports["rspamd_normal"]}"; count = 1;',
        "worker-controller.inc": f'bind_socket = "127.0.0.1:{ports["rspamd_controller"]}"; count = 1;',
        "worker-fuzzy.inc": "enabled = false;",
        "options.inc": OPTIONS.format(dns=ports["dns"]),
        "logging.inc": f'level = "warning"; type = "file"; filename = "{folder}/log/rspamd.log";',
        "antivirus.conf": ANTIVIRUS.format(clamd=clamd),
        "actions.conf": "reject = 999; add_header = 6; greylist = null;",
    }
    return settings


def _write(path, text):
    with open(path, "w") as file:
        file.write(text)
