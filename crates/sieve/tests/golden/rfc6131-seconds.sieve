require "vacation-seconds";
vacation :seconds 1800 "back soon";
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
vacation to "tim@x.example", subject "Auto: [acme-users] fwd: version 1.0 is out", again after 1800 seconds (not sent: the mail names no address of the recipient)
  From: bob+lists@y.example
  To: tim@x.example
  Subject: Auto: [acme-users] fwd: version 1.0 is out
  Date: Mon, 23 Nov 2026 11:33:20 +0100
  In-Reply-To: <1@x.example>
  References: <1@x.example>
  Auto-Submitted: auto-replied (vacation)
  X-Auto-Response-Suppress: All
  Precedence: bulk
  MIME-Version: 1.0
  Content-Type: text/plain; charset=utf-8
  Content-Transfer-Encoding: 8bit
  
  back soon
keep (implicit)
