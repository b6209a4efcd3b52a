require ["fileinto", "imap4flags", "variables"];
addflag "myflags" ["\\Deleted", "Work"];
setflag "\\Seen \\Bad";
if hasflag :contains "myflags" "work" { fileinto :flags "${myflags}" "Work"; }
keep;
=====
From: Tim <tim+work@x.example>
To: bob@y.example
Cc: "C, D" <c@z.example>
Subject: [acme-users] fwd: version 1.0 is out
Date: Mon, 23 Nov 2026 10:05:07 +0130
Message-ID: <1@x.example>
X-Num: 0042
X-Num: 17
Received: from a by b; Mon, 23 Nov 2026 11:00:00 -0500

MAKE MONEY FAST!!!
=====
fileinto "Work" :flags "\\Deleted Work"
keep :flags "\\Seen"
