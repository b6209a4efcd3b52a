require ["duplicate", "fileinto"];
if duplicate :header "X-Num" :handle "h" :last { fileinto "Lists"; }
elsif duplicate :header "X-Num" :uniqueid "x" { discard; }
=====
X-Num: 1

body
=====
error: line 3, column 33: duplicate has its identity already
