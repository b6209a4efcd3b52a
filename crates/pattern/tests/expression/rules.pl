# Reads lines: "E expression flags", then "L haystack", bytes in hexadecimal digits. For each haystack it prints, in one line,
# the numbers of the expressions that match, with the offsets of the match; first it prints the numbers of those refused.
use strict;
no warnings;
my @made;
my @refused;
my $told = 0;
while (my $line = <STDIN>) {
    chomp $line;
    my ($kind, $bytes, $flags) = split / /, $line, -1;
    $bytes = pack "H*", $bytes;
    if ($kind eq "E") {
        my $made = eval "qr/\$bytes/aa$flags";
        push @refused, scalar @made unless defined $made;
        push @made, $made;
        next;
    }
    print "@refused\n" unless $told++;
    my @hits;
    for my $number (0 .. $#made) {
        push @hits, "$number:$-[0]-$+[0]" if defined $made[$number] && $bytes =~ $made[$number];
    }
    print "@hits\n";
}
