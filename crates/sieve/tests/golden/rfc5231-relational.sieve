require ["relational", "comparator-i;ascii-numeric", "fileinto"];
if header :value "lt" :comparator "i;ascii-numeric" ["x-num"] ["42"] { fileinto "less"; }
if address :count "gt" :comparator "i;ascii-numeric" ["to", "cc"] ["1"] { fileinto "many"; }
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
fileinto "less"
fileinto "many"
