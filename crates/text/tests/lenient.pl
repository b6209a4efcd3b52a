# The pieces that HTML::Parser cuts pages into. A page a line, in hexadecimal; pieces on a line, text in hexadecimal.
use strict;
use warnings;
use HTML::Parser;

sub hex_of { my ($text) = @_; utf8::encode($text); return unpack 'H*', $text }

while (my $line = <STDIN>) {
    chomp $line;
    my ($page, @more) = map { my $text = pack 'H*', $_; utf8::decode($text); $text } split /,/, $line, -1;
    my @out;
    my $parser = HTML::Parser->new(api_version => 3, marked_sections => 1, handlers => [
        start => [sub { push @out, join ' ', 'S', hex_of($_[0]), sort map { hex_of($_) . '=' . hex_of($_[1]{$_}) } keys %{$_[1]} }, 'tagname,attr'],
        end => [sub { push @out, 'E ' . hex_of($_[0]) }, 'tagname'],
        text => [sub { push @out, 'T ' . hex_of($_[0]) }, 'dtext'],
        comment => [sub { push @out, 'C ' . hex_of($_[0]) }, 'text'],
        declaration => [sub { push @out, 'D ' . hex_of($_[0]) }, 'text'],
    ]);
    local $SIG{__WARN__} = sub {};
    $parser->parse($_) for $page, @more;
    $parser->eof;
    print join('|', @out), "\n";
}
