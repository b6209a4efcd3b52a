require ["vacation", "copy", "variables"];
set "domain" "exämple.org";
redirect :copy "Ann <a@${domain}>";
vacation :from "Tim <tim@exämple.org>" "away";
=====
From: ann@example.net
To: bob+lists@y.example
Subject: x

hello
=====
redirect "a@xn--exmple-cua.org"
vacation to "tim@x.example", subject "Auto: x", again after 604800 seconds
  handle "away<default-subject>Tim <tim@exämple.org><NO-MIME>"
  From: Tim <tim@xn--exmple-cua.org>
  To: tim@x.example
  Subject: Auto: x
  Date: Mon, 23 Nov 2026 11:33:20 +0100
  Auto-Submitted: auto-replied (vacation)
  X-Auto-Response-Suppress: All
  Precedence: bulk
  MIME-Version: 1.0
  Content-Type: text/plain; charset=utf-8
  Content-Transfer-Encoding: 8bit
  
  away
keep (implicit)
