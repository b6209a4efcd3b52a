"""A Postfix of its own: configuration, queue and log under the bench's folder, the system's Postfix untouched.

Set to be strong: no DNS, no TLS, in_flow_delay 0 (its default is a second), 300 processes, nothing chrooted; the queue
is on disk with its usual fsync. Needs root, as Postfix does.
"""

import os
import shutil
import subprocess

from processes import Failed, Program
from sockets import is_open

DAEMONS = "/usr/lib/postfix/sbin"

MAIN = """compatibility_level = 3.6
queue_directory = {folder}/queue
data_directory = {folder}/data
command_directory = /usr/sbin
daemon_directory = {daemons}
mail_owner = postfix
setgid_group = postdrop
myhostname = gateway.bench.test
mydestination =
alias_maps =
local_recipient_maps =
inet_interfaces = 127.0.0.1
inet_protocols = ipv4
mynetworks = 127.0.0.0/8
relayhost = [127.0.0.1]:{sink}
relay_transport = smtp
disable_dns_lookups = yes
smtp_dns_support_level = disabled
smtpd_peername_lookup = no
smtpd_recipient_restrictions = permit_mynetworks, reject
smtpd_relay_restrictions = permit_mynetworks, reject
smtpd_tls_security_level = none
smtp_tls_security_level = none
message_size_limit = 104857600
mailbox_size_limit = 0
default_process_limit = 300
in_flow_delay = 0
notify_classes =
maillog_file = {folder}/log
maillog_file_prefixes = /var, /tmp
minimal_backoff_time = 5s
queue_run_delay = 5s
import_environment = MAIL_CONFIG MAIL_LOGTAG TZ LANG=C POSTLOG_SERVICE POSTLOG_HOSTNAME LD_PRELOAD FLUSH_MICROSECONDS
"""

MASTER = """pickup unix n - n 60 1 pickup
cleanup unix n - n - 0 cleanup
qmgr unix n - n 300 1 qmgr
rewrite unix - - n - - trivial-rewrite
bounce unix - - n - 0 bounce
defer unix - - n - 0 bounce
trace unix - - n - 0 bounce
verify unix - - n - 1 verify
flush unix n - n 1000? 0 flush
proxymap unix - - n - - proxymap
proxywrite unix - - n - 1 proxymap
smtp unix - - n - - smtp
relay unix - - n - - smtp
error unix - - n - - error
retry unix - - n - - error
discard unix - - n - - discard
anvil unix - - n - 1 anvil
scache unix - - n - 1 scache
postlog unix-dgram n - n - 1 postlogd
"""

# Mail to the filter over LMTP, and its way back in, past the filter.
FILTER = """filter unix - - n - {children} lmtp
  -o lmtp_data_done_timeout=1200
  -o lmtp_send_xforward_command=yes
  -o relayhost=
  -o disable_dns_lookups=yes
127.0.0.1:{back} inet n - n - - smtpd
  -o content_filter=
  -o smtpd_milters=
  -o smtpd_authorized_xforward_hosts=127.0.0.0/8
  -o receive_override_options=no_header_body_checks,no_unknown_recipient_checks,no_milters
  -o smtpd_client_connection_count_limit=0
  -o smtpd_client_connection_rate_limit=0
"""


# One process that talks to everybody first, and hands on who has passed.
SCREEN = """127.0.0.1:{port} inet n - n - 1 postscreen
smtpd pass - - n - - smtpd
dnsblog unix - - n - 0 dnsblog
tlsproxy unix - - n - 0 tlsproxy
"""


def start(folder, port, sink, *, milter=None, lmtp_filter=None, back=None, children=4, screen=False, more=""):
    """Starts Postfix on `port`; `milter` and `lmtp_filter` are UNIX sockets, mail from the filter comes to `back`.

    With `screen` postscreen stands in front of smtpd; `more` is added to main.cf.
    """
    for name in ("etc", "queue", "data"):
        os.makedirs(f"{folder}/{name}")
    shutil.chown(f"{folder}/data", "postfix")
    main = MAIN.format(folder=folder, daemons=DAEMONS, sink=sink)
    if milter:
        main += f"smtpd_milters = unix:{milter}\nmilter_default_action = tempfail\nmilter_protocol = 6\n"
    main += more
    master = SCREEN.format(port=port) if screen else f"127.0.0.1:{port} inet n - n - - smtpd\n"
    if lmtp_filter:
        master += f"  -o content_filter=filter:unix:{lmtp_filter}\n"
    master += MASTER
    if lmtp_filter:
        master += FILTER.format(children=children, back=back)
    _write(f"{folder}/etc/main.cf", main)
    _write(f"{folder}/etc/master.cf", master)
    checked = subprocess.run(["/usr/sbin/postfix", "-c", f"{folder}/etc", "check"], capture_output=True, text=True)
    if checked.returncode:
        raise Failed(f"postfix check: {checked.stderr}")
    command = [f"{DAEMONS}/master", "-c", f"{folder}/etc", "-d"]
    return Program("postfix", command, f"{folder}/start.log").wait_until(lambda: is_open(port))


def _write(path, text):
    with open(path, "w") as file:
        file.write(text)
