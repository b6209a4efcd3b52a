#!/usr/bin/env bash
# Angus Mail 2.0.3 (Maven, org.eclipse.angus:angus-mail): at a server with UTF8=ACCEPT a search for a word beyond ASCII is sent in Latin-1.
#
# The client enables UTF8=ACCEPT by itself. From there on strings are UTF-8 (RFC 6855, section 3, other octets are to be refused); the words
# of a search are written by the low byte of each letter, in quotes and without CHARSET, so that nothing is found, or the answer is BAD. At a
# server without the extension the same search has CHARSET UTF-8 and a literal in UTF-8.
# Seen: SEARCH CHARSET UTF-8 SUBJECT {7} gr c3bc c39f e, and SEARCH SUBJECT "gr fc df e".
set -euo pipefail
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
cd "$folder"
cat >pom.xml <<'END'
<project xmlns="http://maven.apache.org/POM/4.0.0">
  <modelVersion>4.0.0</modelVersion><groupId>finding</groupId><artifactId>finding</artifactId><version>1</version>
  <dependencies><dependency>
    <groupId>org.eclipse.angus</groupId><artifactId>angus-mail</artifactId><version>2.0.3</version>
  </dependency></dependencies>
</project>
END
mvn -q -B dependency:copy-dependencies -DoutputDirectory=jars >/dev/null
cat >Ask.java <<'END'
import jakarta.mail.*;
import jakarta.mail.search.SubjectTerm;
import java.util.Properties;

public class Ask {
    public static void main(String[] arguments) throws Exception {
        Properties settings = new Properties();
        settings.put("mail.imap.host", "127.0.0.1");
        settings.put("mail.imap.port", arguments[0]);
        Store store = Session.getInstance(settings).getStore("imap");
        store.connect("ann", "secret");
        Folder folder = store.getFolder("INBOX");
        folder.open(Folder.READ_ONLY);
        folder.search(new SubjectTerm("gr\u00fc\u00dfe"));
        store.close();
    }
}
END
javac -cp 'jars/*' Ask.java
cat >serve.py <<'END'
import re
import socket
import subprocess

def searched(capabilities):
    """The SEARCH of the client at a server with these capabilities, as it is sent."""
    listener = socket.create_server(("127.0.0.1", 0))
    client = subprocess.Popen(["java", "-cp", "jars/*:.", "Ask", str(listener.getsockname()[1])])
    wire = listener.accept()[0].makefile("rwb")
    def say(*lines):
        wire.write(b"".join(line.encode() + b"\r\n" for line in lines))
        wire.flush()
    say(f"* OK [CAPABILITY {capabilities}] ready")
    search = b""
    while line := wire.readline():
        while literal := re.search(rb"\{(\d+)(\+?)\}\r\n$", line):
            if not literal[2]:
                say("+ go on")
            line += wire.read(int(literal[1])) + wire.readline()
        tag, command = line.split(b" ", 1)
        name = command.split()[0].upper()
        if name == b"SEARCH":
            search = command.strip()
        said = {b"CAPABILITY": [f"* CAPABILITY {capabilities}"], b"ENABLE": ["* ENABLED UTF8=ACCEPT"], b"SEARCH": ["* SEARCH"],
                b"EXAMINE": ["* 1 EXISTS", "* OK [UIDVALIDITY 1] valid", "* FLAGS ()"], b"LOGOUT": ["* BYE ends"]}
        say(*said.get(name, []), f"{tag.decode()} OK done")
        if name == b"LOGOUT":
            break
    client.wait()
    return search

print(searched("IMAP4rev1"), searched("IMAP4rev1 ENABLE UTF8=ACCEPT"))
END
seen=$(timeout 60 python3 serve.py)
echo "Angus Mail 2.0.3: $seen"
[ "$seen" = "b'SEARCH CHARSET UTF-8 SUBJECT {7}\\r\\ngr\\xc3\\xbc\\xc3\\x9fe ALL' b'SEARCH SUBJECT \"gr\\xfc\\xdfe\" ALL'" ]
