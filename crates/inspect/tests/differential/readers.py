"""Which mails Python's `email` opens. Argument: a file of mails, each behind its length in four bytes, big end first, and
the marks that a decoded part begins with, in hexadecimal. Prints, for each mail, the readers that find one."""
import email
import email.policy
import sys

data = open(sys.argv[1], "rb").read()
marks = tuple(bytes.fromhex(mark) for mark in sys.argv[2:])


def opens(mail, policy):
    try:
        for part in email.message_from_bytes(mail, policy=policy).walk():
            if part.is_multipart():
                continue
            content = part.get_payload(decode=True) or b""
            if content.startswith(marks):
                return True
    except Exception:
        pass
    return False


at = 0
while at < len(data):
    size = int.from_bytes(data[at : at + 4], "big")
    mail = data[at + 4 : at + 4 + size]
    at += 4 + size
    readers = [("python", email.policy.compat32), ("python-default", email.policy.default)]
    print(" ".join(name for name, policy in readers if opens(mail, policy)))
