# RFC 5230, section 4.4: an address that the implementation cannot use leaves the sender to it. Sections 4.2 and 4.3: an empty subject is none.
require ["vacation", "variables"];
set "f" "bad, x <tim@y.example>";
vacation :from "${f}" :subject "" "away";
=====
From: tim@x.example
To: bob+lists@y.example
Subject: hello

x
=====
vacation to "tim@x.example", subject "Auto: hello", again after 604800 seconds
  handle "away${f}<NO-MIME>"
  From: bob+lists@y.example
  To: tim@x.example
  Subject: Auto: hello
  Date: Mon, 23 Nov 2026 11:33:20 +0100
  Auto-Submitted: auto-replied (vacation)
  X-Auto-Response-Suppress: All
  Precedence: bulk
  MIME-Version: 1.0
  Content-Type: text/plain; charset=utf-8
  Content-Transfer-Encoding: 8bit
  
  away
keep (implicit)
