"""The guests of bench/bare: kernel, initramfs and root of a small Debian, and machines under QEMU's emulation that differ in nothing else.

The Debian guest has no init system: a shell mounts what is needed, sets the address, and starts what the kernel's command line names,
Sluice's webmail or Roundcube with nginx, php-fpm and Dovecot. Its root is laid once for a folder, and every machine has a copy of its own that is
gone with it (snapshot).
"""

import glob
import mmap
import os
import shutil
import socket
import struct
import subprocess
import time

from processes import Failed, Program
from web import write
from webmail import DOVECOT, FPM, ROUNDCUBE, mails

SECONDS_MAX = 900
CLIENTS = 1000
PACKAGES = "busybox-static,nginx-light,php8.2-fpm,php8.2-sqlite3,roundcube-core,roundcube-sqlite3,dovecot-imapd"
# In the order in which they need each other.
MODULES = ("failover", "net_failover", "virtio_ring", "virtio", "virtio_pci_modern_dev", "virtio_pci_legacy_dev", "virtio_pci", "virtio_blk",
           "virtio_net", "crc16", "mbcache", "jbd2", "crc32c_generic", "ext4")
FIRST = """#!/bin/busybox sh
/bin/busybox mount -t proc proc /proc
/bin/busybox mount -t devtmpfs dev /dev
while read module; do /bin/busybox insmod /modules/$module.ko; done </modules/order
/bin/busybox mount -t ext4 -o noatime /dev/vda /root
/bin/busybox umount /proc
exec /bin/busybox switch_root /root /bench/init
"""
INIT = """#!/bin/busybox sh
export PATH=/usr/sbin:/usr/bin:/sbin:/bin
b=/bin/busybox
$b mount -t proc proc /proc
$b mount -t sysfs sys /sys
$b mount -t devtmpfs dev /dev
$b mount -t tmpfs run /run
for word in $($b cat /proc/cmdline); do case $word in bench_*) eval "$word" ;; esac; done
$b ip link set lo up
$b ip addr add $bench_address/24 dev eth0
$b ip link set eth0 up
$b ip route add default via ${bench_address%.*}.1
ulimit -n 65536
echo 4096 >/proc/sys/net/core/somaxconn
case $bench_role in
sluice) /bench/sluice serve --allow-root --config /bench/sluice.toml & ;;
roundcube)
    /usr/sbin/dovecot -F -c /bench/dovecot.conf &
    /usr/sbin/php-fpm8.2 -F -y /bench/fpm.conf &
    /usr/sbin/nginx -c /bench/nginx.conf & ;;
esac
while :; do $b sleep 1000; done
"""
SLUICE = """hostname = "mail.test"
[log]
level = "error"
[store]
folder = "/bench/store"
size = "512M"
accounts = "/bench/accounts"
lmtp = ["0.0.0.0:24"]
webmail = ["0.0.0.0:80"]
webmails = ["0.0.0.0:443"]
[[tls.certificate]]
chain = "/bench/chain.pem"
key = "/bench/key.pem"
"""
NGINX = """daemon off;
worker_processes 1;
worker_rlimit_nofile 65536;
pid /run/nginx.pid;
error_log /bench/nginx.log;
events { worker_connections 8192; }
http {
  access_log off; keepalive_requests 1000000; sendfile on;
  server {
    listen 80 backlog=4096; listen 443 ssl backlog=4096; ssl_certificate /bench/chain.pem; ssl_certificate_key /bench/key.pem;
    root /usr/share/roundcube; index index.php;
    location ~ \\.php$ { include /etc/nginx/fastcgi_params; fastcgi_param SCRIPT_FILENAME $document_root$fastcgi_script_name;
      fastcgi_pass unix:/bench/php.sock; }
  }
}
"""
BARE = """hostname = mail.test
connections = {connections}
address = {address}/24
gateway = {gateway}
plain = {plain}
account = ann@mail.test:{{PLAIN}}secret
account = bob@mail.test:{{PLAIN}}secret
"""


def run(*command, **options):
    """What a command prints; its failure ends the bench."""
    try:
        return subprocess.run(command, check=True, timeout=SECONDS_MAX, stdout=subprocess.PIPE, stderr=subprocess.PIPE, **options).stdout
    except (subprocess.CalledProcessError, subprocess.TimeoutExpired, OSError) as error:
        reason = getattr(error, "stderr", None) or b""
        raise Failed(f"{command[0]}: {error} {reason.decode(errors='replace')[-500:]}") from error


def many_clients():
    """Gives each connection one of a thousand addresses in as many networks: Sluice bounds what one address may begin in a minute."""
    addresses = ", ".join(f"{number} : 10.{100 + number // 250}.{number % 250}.1" for number in range(CLIENTS))
    chain = f"type nat hook postrouting priority 100\nsnat to numgen inc mod {CLIENTS} map {{ {addresses} }}"
    run("nft", "-f", "-", input=f"table ip clients {{\nchain leaving {{\n{chain}\n}}\n}}\n".encode())


class Images:
    """Files that machines begin with; `cache` keeps what Debian gives, `folder` what is made of it."""

    def __init__(self, cache, folder, sluice, bare, count):
        self.folder, self.bare = folder, bare
        self.kernel, modules = kernel(cache)
        self.key(folder)
        self.first(modules)
        self.counter = f"{folder}/instructions.so"
        run("cc", "-O2", "-shared", "-fPIC", "-o", self.counter, os.path.join(os.path.dirname(__file__), "instructions.c"))
        self.root(debian(cache), sluice, count)

    def key(self, folder):
        self.chain, self.secret = f"{folder}/chain.pem", f"{folder}/key.pem"
        run("openssl", "req", "-x509", "-newkey", "ec", "-pkeyopt", "ec_paramgen_curve:prime256v1", "-nodes", "-days", "30", "-subj", "/CN=mail.test",
            "-addext", "subjectAltName=DNS:mail.test", "-keyout", self.secret, "-out", self.chain)

    def first(self, modules):
        """The initramfs: busybox, and modules for disk and network."""
        self.initramfs, place = f"{self.folder}/initramfs", f"{self.folder}/first"
        for name in ("bin", "modules", "proc", "dev", "root"):
            os.makedirs(f"{place}/{name}")
        shutil.copy("/bin/busybox", f"{place}/bin/busybox")
        present = [name for name in MODULES if (found := glob.glob(f"{modules}/**/{name}.ko", recursive=True)) and shutil.copy(found[0], f"{place}/modules/")]
        write(f"{place}/modules/order", "".join(f"{name}\n" for name in present))
        os.chmod(write(f"{place}/init", FIRST), 0o755)
        run("sh", "-c", f"cd {place} && find . | cpio --quiet -o -H newc >{self.initramfs}")

    def root(self, debian, sluice, count):
        place, self.disk = f"{self.folder}/root", f"{self.folder}/root.img"
        run("cp", "-a", "--reflink=auto", debian, place)
        bench = f"{place}/bench"
        for name in ("store", "run", "state", "roundcube", "mail/ann/new", "mail/ann/cur", "mail/ann/tmp", "mail/bob"):
            os.makedirs(f"{bench}/{name}")
        run("strip", "-o", f"{bench}/sluice", sluice)
        for file in (self.chain, self.secret):
            shutil.copy(file, bench)
        os.chmod(write(f"{bench}/init", INIT), 0o755)
        os.chmod(write(f"{bench}/accounts", "ann@mail.test:{PLAIN}secret\nbob@mail.test:{PLAIN}secret\n"), 0o600)
        write(f"{bench}/sluice.toml", SLUICE)
        write(f"{bench}/nginx.conf", NGINX)
        write(f"{bench}/dovecot.conf", DOVECOT.format(folder="/bench", imap=143))
        # One processor, and memory for no more.
        write(f"{bench}/fpm.conf", FPM.format(folder="/bench").replace("max_children = 8", "max_children = 3"))
        write(f"{bench}/roundcube/config.inc.php", ROUNDCUBE.format(folder="/bench", imap=143))
        shutil.copy(f"{place}/etc/roundcube/defaults.inc.php", f"{bench}/roundcube/")
        for number, mail in enumerate(mails(count)):
            write(f"{bench}/mail/ann/cur/{1_700_000_000 + number}.{number}.bench:2,S", mail.replace("\r\n", "\n"))
        run("chown", "-R", "nobody:nogroup", f"{bench}/mail", f"{bench}/roundcube")
        run("mkfs.ext4", "-q", "-d", place, self.disk, "3G")
        shutil.rmtree(place)


def kernel(cache):
    """Debian's kernel for virtual machines, and the folder of its modules."""
    place = f"{cache}/kernel"
    if not os.path.exists(place):
        os.makedirs(f"{place}.part", exist_ok=True)
        told = run("apt-cache", "depends", "linux-image-cloud-amd64", text=True)
        package = next(word for word in told.split() if word.startswith("linux-image-6"))
        run("apt-get", "download", package, cwd=f"{place}.part")
        run("dpkg-deb", "-x", glob.glob(f"{place}.part/*.deb")[0], f"{place}.part")
        os.rename(f"{place}.part", place)
    return glob.glob(f"{place}/boot/vmlinuz-*")[0], glob.glob(f"{place}/lib/modules/*")[0]


def debian(cache):
    """The folder of a Debian 12 with what Roundcube takes."""
    place = f"{cache}/debian"
    if not os.path.exists(place):
        shutil.rmtree(f"{place}.part", ignore_errors=True)
        run("mmdebstrap", "--mode=root", "--variant=minbase", f"--include={PACKAGES}", '--aptopt=APT::Install-Recommends "false"', "bookworm", f"{place}.part")
        os.rename(f"{place}.part", place)
    return place


class Guest:
    """A machine under QEMU. It stands still except in `with guest:`, so that several share the processors by turns."""

    number = 0

    def __init__(self, name, images, folder, role, **settings):
        Guest.number += 1
        self.name, self.images, self.folder, self.role, self.settings = name, images, f"{folder}/{name}-{Guest.number}", role, settings
        os.makedirs(self.folder)
        self.tap, network = f"tap{Guest.number}", f"10.9.{Guest.number}"
        self.address, self.gateway, self.mac = f"{network}.2", f"{network}.1", f"52:54:00:12:34:{Guest.number:02x}"
        self.lines = None
        run("ip", "tuntap", "add", self.tap, "mode", "tap")
        run("ip", "addr", "add", f"{self.gateway}/24", "dev", self.tap)
        run("ip", "link", "set", self.tap, "up")
        # Or a request for the address that nobody answers delays what comes after it.
        run("ip", "neigh", "replace", self.address, "lladdr", self.mac, "dev", self.tap)
        if role == "bare":
            with open(f"{self.folder}/store.img", "wb") as disk:
                disk.truncate(512 << 20)

    def command(self, counted):
        common = ["qemu-system-x86_64", "-machine", "pc,accel=tcg", "-cpu", "max,-erms", "-smp", "1", "-m", "512", "-display", "none", "-no-reboot",
                  "-serial", f"file:{self.folder}/console", "-monitor", f"unix:{self.folder}/monitor,server,nowait",
                  "-netdev", f"tap,id=net,ifname={self.tap},script=no,downscript=no", "-device", f"virtio-net-pci,netdev=net,mac={self.mac}"]
        if counted:
            common += ["-plugin", f"{self.images.counter},out={self.folder}/counters"]

        def disk(name, more=""):
            return ["-drive", f"if=none,id={os.path.basename(name).split('.')[0]},format=raw,file={name}{more}", "-device",
                    f"virtio-blk-pci,drive={os.path.basename(name).split('.')[0]}"]
        if self.role == "bare":
            with open(self.images.chain) as chain, open(self.images.secret) as secret:
                text = BARE.format(address=self.address, gateway=self.gateway, **{"connections": 256, "plain": "yes", **self.settings}) + chain.read() + secret.read()
            write(f"{self.folder}/site.conf", text)
            return common + ["-kernel", self.images.bare, *disk(f"{self.folder}/store.img"), *disk(f"{self.folder}/site.conf", ",readonly=on")]
        words = f"console=ttyS0 quiet mitigations=off panic=-1 net.ifnames=0 bench_role={self.role} bench_address={self.address}"
        return common + ["-kernel", self.images.kernel, "-initrd", self.images.initramfs, "-append", words, *disk(self.images.disk, ",snapshot=on")]

    def start(self, counted=True, path=b"/login", seconds=120):
        """Seconds from the start of QEMU to the first byte of a page."""
        began = time.monotonic()
        self.program = Program(self.name, self.command(counted), f"{self.folder}/out")
        port = 443 if self.settings.get("plain") == "no" else 80
        while not self.answers(port, path):
            if time.monotonic() - began > seconds or self.program.root.poll() is not None:
                raise Failed(f"{self.name} does not answer: {self.program.log_tail()} {self.console()[-3000:]}")
        took = time.monotonic() - began
        if counted:
            with open(f"{self.folder}/counters", "r+b") as file:
                self.lines = mmap.mmap(file.fileno(), 16)
        return took

    def answers(self, port, path):
        with socket.socket() as one:
            one.settimeout(0.02)
            try:
                one.connect((self.address, port))
                if port == 443:
                    return True
                one.settimeout(20)
                one.sendall(b"GET " + path + b" HTTP/1.1\r\nHost: mail.test\r\nConnection: close\r\n\r\n")
                return b" 502 " not in (first := one.recv(64)) and first != b""
            except OSError:
                return False

    def console(self):
        with open(f"{self.folder}/console", errors="replace") as console:
            return console.read()

    def instructions(self):
        """Instructions so far, in programs and in the kernel."""
        return struct.unpack("<QQ", self.lines[:16])

    def monitor(self, command):
        with socket.socket(socket.AF_UNIX) as monitor:
            monitor.settimeout(60)
            monitor.connect(f"{self.folder}/monitor")
            for line in (b"", command.encode() + b"\n"):
                monitor.sendall(line)
                told = b""
                while not told.endswith(b"(qemu) "):
                    told += monitor.recv(1 << 16)

    def __enter__(self):
        self.monitor("cont")
        return self

    def __exit__(self, *_):
        self.monitor("stop")

    def stop(self):
        self.program.stop()
