#!/usr/bin/env perl
# Answers with the length of a text: baton up --exec 'perl examples/handlers/length.pl' --lines FILE --until-done
use strict; use warnings;
use JSON::PP;

# Standard output is for answers alone: what is for people goes to standard error, by warn.
$| = 1;
while (my $line = <STDIN>) {
    my $message = decode_json($line);
    my $answer = ref $message->{body}
        ? { event => 'error', message => 'no text', fatal => JSON::PP::true }
        : { event => 'end', data => length $message->{body} };
    print encode_json({ id => $message->{id}, %$answer }), "\n";
}
