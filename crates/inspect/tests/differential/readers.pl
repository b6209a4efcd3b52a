# Which mails MIME-tools and Email::MIME open. Arguments and output as of readers.py.
use strict; use warnings; no warnings;
use MIME::Parser; use Email::MIME;
my ($file, @marks) = @ARGV;
@marks = map { pack 'H*', $_ } @marks;
open my $in, '<:raw', $file or die "$file: $!";
open STDERR, '>', '/dev/null';
sub found { my $content = shift; defined $content && grep { index($content, $_) == 0 } @marks }
$SIG{ALRM} = sub { die "too long\n" };
while (read($in, my $size, 4) == 4) {
    read($in, my $mail, unpack 'N', $size);
    my @readers;
    push @readers, 'mime-tools' if eval {
        alarm 10;
        my $parser = MIME::Parser->new; $parser->output_to_core(1); $parser->tmp_to_core(1);
        grep { $_->bodyhandle && found($_->bodyhandle->as_string) } $parser->parse_data($mail)->parts_DFS;
    };
    push @readers, 'email-mime' if eval {
        alarm 10;
        my $any;
        Email::MIME->new($mail)->walk_parts(sub { my $part = shift; $any ||= !$part->subparts && found(eval { $part->body }) });
        $any;
    };
    alarm 0;
    print "@readers\n";
}
