#!/usr/bin/perl
# The program of wordcount.yaml: arguments come as one JSON object on standard input, the result goes as JSON to standard output. Should it die, the last line of its
# standard error is the caller's error.
use strict;
use warnings;

use JSON::PP;

my $args = decode_json(do { local $/; <STDIN> });
my $text = $args->{text};
my @words = grep { length >= $args->{least} } split ' ', $text;

die "there is nothing to count\n" unless length $text;
print encode_json({ lines => scalar(() = $text =~ /\n/g), words => scalar @words, characters => length $text });
