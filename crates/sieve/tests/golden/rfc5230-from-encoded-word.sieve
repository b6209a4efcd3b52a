# A display name in encoded words (RFC 2047) stays as it is.
require "vacation";
vacation :from "=?utf-8?q?T=C3=BCm?= <tim@y.example>" "away";
=====
From: tim@x.example
To: bob+lists@y.example
Subject: hello

x
=====
vacation to "tim@x.example", subject "Auto: hello", again after 604800 seconds
  From: =?utf-8?q?T=C3=BCm?= <tim@y.example>
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
