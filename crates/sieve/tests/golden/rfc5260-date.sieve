require ["date", "relational", "index", "fileinto"];
if allof (currentdate :value "ge" "date" "2026-11-23", currentdate "weekday" "1") { fileinto "today"; }
if date :originalzone "date" "hour" "10" { fileinto "ten"; }
if date :index 1 :last :zone "+0000" "received" "time" "16:00:00" { fileinto "four"; }
if header :index 2 "x-num" "17" { fileinto "second"; }
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
fileinto "today"
fileinto "ten"
fileinto "four"
fileinto "second"
