# What SpamAssassin makes of mails, as a line of JSON each: header fields, bodies, addresses, parts, HTML.
# Usage: views.pl FUNCTIONS < LIST: names of functions with commas between, whose rules are run; a file name a line.
# Text that Perl holds as characters is printed as its UTF-8, a character of the output for each byte.
use strict;
use warnings;
use Digest::MD5 qw(md5_hex);
use JSON::PP;
use Mail::SpamAssassin;
use Mail::SpamAssassin::PerMsgStatus;

my $peer = Mail::SpamAssassin->new({
    userprefs_filename => '/dev/null', dont_copy_prefs => 1, local_tests_only => 1, languages => 'C',
});
$peer->init(1);
my $json = JSON::PP->new->latin1->canonical;
my @modifiers = qw(raw addr name host domain addr:host addr:domain ip revip first last);

my %functions = map { $_ => 1 } split /,/, $ARGV[0] // '';
my %calls;
for my $list (qw(body_evals rawbody_evals head_evals)) {
    for my $rules (values %{$peer->{conf}{$list} || {}}) {
        $calls{$_} = [$list, @{$rules->{$_}}] for grep { $functions{$rules->{$_}[0]} } keys %$rules;
    }
}

# Which of the rules hit, each run by itself.
sub hits {
    my ($status, $message) = @_;
    my %texts = (
        body_evals => [$status->get_decoded_stripped_body_text_array],
        rawbody_evals => [$status->get_decoded_body_text_array], head_evals => [],
    );
    $status->{html_all} = [grep { defined } @{$message->{metadata}{html_all} || []}];
    my %hits;
    for my $rule (keys %calls) {
        my ($list, $function, $arguments) = @{$calls{$rule}};
        my $plugin = $peer->{conf}{eval_plugins}{$function} or next;
        no warnings;
        $hits{$rule} = eval { $plugin->$function($status, @{$texts{$list}}, @$arguments) } ? JSON::PP::true : JSON::PP::false;
    }
    return \%hits;
}

sub bytes {
    my ($text) = @_;
    return undef if !defined $text;
    utf8::encode($text) if utf8::is_utf8($text);
    return "$text";
}

sub fields {
    my ($node) = @_;
    my %seen;
    return [map {
        my $name = lc $_;
        my $at = $seen{$name}++;
        [bytes($_), bytes($node->{raw_headers}{$name}[$at]), bytes($node->{headers}{$name}[$at])];
    } @{$node->{header_order}}];
}

sub get {
    my ($status, $message) = @_;
    my (%got, %seen);
    my @names = grep { /^[A-Za-z0-9-]+$/ && !$seen{lc $_}++ } @{$message->{header_order}};
    for my $name (@names, qw(ToCc MESSAGEID ALL)) {
        next if lc $name eq 'all' && $name ne 'ALL';
        for my $modifier ('', @modifiers) {
            my $request = $modifier eq '' ? $name : "$name:$modifier";
            $got{$request} = [map { bytes($_) } $status->get($request)];
        }
    }
    return \%got;
}

sub part {
    my ($node, $depth) = @_;
    my $decoded = exists $node->{raw} ? $node->decode : undef;
    my $rendered = $node->is_leaf ? ($node->rendered)[1] : undef;
    my @below = map { part($_, $depth + 1) } $node->is_leaf ? () : @{$node->{body_parts}};
    return ({
        depth => $depth, type => bytes($node->{type}), effective => bytes($node->effective_type),
        charset => bytes($node->{charset}), name => bytes($node->{name}), leaf => $node->is_leaf ? JSON::PP::true : JSON::PP::false,
        decoded => defined $decoded ? md5_hex(bytes($decoded)) : undef, rendered => defined $rendered ? JSON::PP::true : JSON::PP::false,
        fields => fields($node), message => ref $node eq 'Mail::SpamAssassin::Message' ? JSON::PP::true : JSON::PP::false,
        lines => exists $node->{raw} ? scalar @{$node->raw || []} : undef,
    }, @below);
}

sub plain {
    my ($value) = @_;
    return [map { plain($_) } @$value] if ref $value eq 'ARRAY';
    return {map { bytes($_) => plain($value->{$_}) } keys %$value} if ref $value eq 'HASH';
    return bytes($value);
}

while (my $file = <STDIN>) {
    chomp $file;
    open my $handle, '<:raw', $file or die "$file: $!";
    my $text = do { local $/; <$handle> };
    my $message = $peer->parse($text, 1);
    my $status = Mail::SpamAssassin::PerMsgStatus->new($peer, $message);
    $message->extract_message_metadata($status);
    $status->extract_message_metadata;
    my $body = $status->get_decoded_stripped_body_text_array;
    my $uris = $status->get_uri_detail_list;
    my %uris = map {
        my $detail = $uris->{$_};
        (bytes($_) => {
            types => [sort keys %{$detail->{types}}], cleaned => [sort map { bytes($_) } @{$detail->{cleaned} || []}],
            anchor => [map { bytes($_) } @{$detail->{anchor_text} || []}], hosts => plain($detail->{hosts} || {}),
            domains => [sort map { bytes($_) } keys %{$detail->{domains} || {}}],
        });
    } grep { $uris->{$_}{types} } keys %$uris;
    my %html = %{$message->{metadata}{html} || {}};
    delete @html{qw(uri uri_detail)};
    print $json->encode({
        file => $file, fields => fields($message), get => get($status, $message),
        body => [map { bytes($_) } @$body],
        visible => [map { bytes($_) } @{$message->get_visible_rendered_body_text_array}],
        invisible => [map { bytes($_) } @{$message->get_invisible_rendered_body_text_array}],
        raw_body => [map { bytes($_) } @{$status->get_decoded_body_text_array}],
        full => md5_hex($message->get_pristine), header_bytes => length $message->get_pristine_header,
        uris => \%uris, list => [sort map { bytes($_) } $status->get_uri_list],
        evals => hits($status, $message), parts => [part($message, 0)], html => plain(\%html),
        flags => {map { $_ => $message->{$_} ? JSON::PP::true : JSON::PP::false } qw(
            missing_head_body_separator missing_mime_headers missing_mime_head_body_separator mime_epilogue_exists
            truncated_header mimepart_limit_exceeded)},
    }), "\n";
    $status->finish;
    $message->finish;
}
