# Reads cases, one a line: the expression, its flags, the haystack, the place to begin at; bytes in hexadecimal digits.
# For each it prints "refused", "none", or the offsets of the match and its groups ("-" where a group has none).
use strict;
no warnings;
binmode STDIN;
$| = 1;
my %compiled;
while (my $line = <STDIN>) {
    chomp $line;
    my ($text, $flags, $haystack, $from) = split / /, $line, -1;
    my $expression = $compiled{"$text $flags"} //= do {
        my $source = pack "H*", $text;
        my $made = eval "qr/\$source/aa$flags";
        defined $made ? { made => $made } : {};
    };
    if (!$expression->{made}) {
        print "refused\n";
        next;
    }
    my $bytes = pack "H*", $haystack;
    my $made = $expression->{made};
    pos($bytes) = $from;
    if ($bytes !~ /$made/g) {
        print "none\n";
        next;
    }
    my @groups = map { defined $-[$_] && defined $+[$_] ? "$-[$_]-$+[$_]" : "-" } 0 .. $#-;
    # Groups behind the last that matched are not in the arrays.
    print join(" ", @groups), "\n";
}
