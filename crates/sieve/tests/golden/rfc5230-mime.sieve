require "vacation";
vacation :mime :subject "Grüße" :from "bob@y.example" :handle "h" text:
Content-Type: text/html

<b>away</b>
.
;
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
vacation to "tim@x.example", subject "Grüße", again after 604800 seconds (not sent: the mail names no address of the recipient)
  From: bob@y.example
  To: tim@x.example
  Subject: =?utf-8?b?R3LDvMOfZQ==?=
  Date: Mon, 23 Nov 2026 11:33:20 +0100
  In-Reply-To: <1@x.example>
  References: <1@x.example>
  Auto-Submitted: auto-replied (vacation)
  X-Auto-Response-Suppress: All
  Precedence: bulk
  MIME-Version: 1.0
  Content-Type: text/html
  
  <b>away</b>
keep (implicit)
