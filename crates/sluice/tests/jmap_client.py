# A client by the library jmapc (PyPI): logs in, reads, changes, hears of changes, writes and sends. `jmap_client.py HOST:PORT` as ann, who has
# a mail; prints what it has seen.
import sys

import jmapc
import requests.adapters
from jmapc import Address, Email, EmailAddress, EmailBodyPart, EmailBodyValue, EmailSubmission, Envelope
from jmapc import EmailQueryFilterCondition, MailboxQueryFilterCondition, Ref
from jmapc.methods import CustomMethod, EmailGet, EmailQuery, EmailSet, EmailSubmissionSet, IdentityGet, MailboxGet, MailboxQuery
from jmapc.methods import SearchSnippetGet, ThreadGet


class Plain(requests.adapters.HTTPAdapter):
    """The library asks for the session by HTTPS alone; the server of the test has no TLS."""

    def send(self, request, **more):
        request.url = request.url.replace("https://", "http://", 1)
        return super().send(request, **more)


client = jmapc.Client.create_with_password(sys.argv[1], "ann", "secret")
client.requests_session.mount("https://", Plain())


def ask(*calls):
    return [reply.response for reply in client.request(list(calls), raise_errors=True)]


def mailbox(role):
    return ask(MailboxQuery(filter=MailboxQueryFilterCondition(role=role)), MailboxGet(ids=Ref("/ids")))[1].data[0].id


inbox, drafts = mailbox("inbox"), mailbox("drafts")
query = EmailQuery(filter=EmailQueryFilterCondition(in_mailbox=inbox, text="Hello"), collapse_threads=True)
_, mails, snippets = ask(query, EmailGet(ids=Ref("/ids"), fetch_text_body_values=True),
                         SearchSnippetGet(ids=Ref("/ids", method=0), filter=EmailQueryFilterCondition(text="Hello")))
mail = mails.data[0]
text = mail.body_values[mail.text_body[0].part_id].value
print("read", mail.subject, mail.mail_from[0].email, repr(text), snippets.data[0].subject)
print("thread", ask(ThreadGet(ids=[mail.thread_id]))[0].data[0].email_ids == [mail.id])

ask(EmailSet(update={mail.id: {"keywords/$seen": True, "keywords/work": True}}))
print("keywords", sorted(ask(EmailGet(ids=[mail.id], properties=["keywords"]))[0].data[0].keywords))

identity = ask(IdentityGet())[0].data[0]
draft = Email(mail_from=[EmailAddress(email=identity.email)], to=[EmailAddress(name="Bob", email="bob@mx.test")],
              subject="Gr\u00fc\u00dfe", keywords={"$draft": True}, mailbox_ids={drafts: True},
              body_values={"body": EmailBodyValue(value="By a library.")},
              text_body=[EmailBodyPart(part_id="body", type="text/plain")])
envelope = Envelope(mail_from=Address(email=identity.email), rcpt_to=[Address(email="bob@mx.test")])
sent = ask(EmailSet(create={"draft": draft}), EmailSubmissionSet(
    on_success_destroy_email=["#send"],
    create={"send": EmailSubmission(email_id="#draft", identity_id=identity.id, envelope=envelope)}))
print("sent", bool(sent[1].created["send"].id), "draft gone", sent[2].destroyed == [sent[0].created["draft"].id])


def vacation(method, data):
    call = CustomMethod(data={"accountId": client.account_id, **data})
    call.jmap_method, call.using = method, {"urn:ietf:params:jmap:vacationresponse"}
    return ask(call)[0].data


away = {"isEnabled": True, "toDate": "2999-01-01T00:00:00Z", "subject": "Away", "htmlBody": "<p>I am <b>away</b>.</p>"}
vacation("VacationResponse/set", {"update": {"singleton": away}})
kept = vacation("VacationResponse/get", {"ids": ["singleton"]})["list"][0]
print("vacation", kept["isEnabled"], kept["toDate"], kept["subject"], kept["textBody"], kept["htmlBody"])
