# The layers of common/, policy/ and handlers/: which file may include which header, and who may call what.
use strict;
use warnings;

use FindBin;
use Test::More;

chdir "$FindBin::Bin/.." or die $!;

# Modules of common/ that know nothing of HTTP or policy (Makefile.am, libbase).
my %base = map { $_ => 1 } qw(auto base64 base64_simd block board clock endpoint err glob ids json json_scan json_value log rates shlex strbuf uri utf8);

# Functions that only these files may call: whoever needs them goes through the door that they keep.
my %doors = (
	'fork|vfork|posix_spawnp?|execve|execv|execvp|execl|execlp|system|popen' => qr{\A(?:common/spawn|handlers/(?:abxd|abxctl|ptyd|exec)/)},
	'kill|killpg|pidfd_send_signal' => qr{\A(?:common/(?:spawn|responder)|handlers/(?:abxd|abxctl|ptyd|process)/)},
	'strcpy|sprintf|vsprintf|gets|strtok|gmtime|localtime|alloca|tmpnam|mktemp' => qr{\A\z},
	'realpath|chdir|umask|setenv|putenv|unsetenv' => qr{\A(?:common/paths|handlers/(?:abxd|abxctl|ptyd)/)},
	'openat2' => qr{\Acommon/(?:paths|cage)},
);

my @files = split /\n/, `git ls-files -- common policy handlers 2>/dev/null` || `find common policy handlers -type f`;
@files = grep { /\.[ch]\z/ } @files;
my $makefile = do { open my $in, '<', 'Makefile.am' or die $!; local $/; <$in> };
cmp_ok scalar @files, '>', 50, 'the sources are found';

for my $file (sort @files) {
	open my $in, '<', $file or die "$file: $!";
	my $text = do { local $/; <$in> };
	my @includes = $text =~ /^#include "([^"]+)"/mg;
	my ($module) = $file =~ m{\Acommon/(\w+)\.};
	my @bad;

	for my $header (@includes) {
		push @bad, "$header: does not exist" unless -e $header || $makefile =~ m{\b\Q$header\E\b};
		if ($module && $base{$module}) {
			my ($other) = $header =~ m{\Acommon/(\w+)\.h\z};
			push @bad, $header unless ($other && $base{$other}) || $header eq 'handlers/tables.h';
		} elsif ($file =~ m{\Apolicy/}) {
			my ($other) = $header =~ m{\Acommon/(\w+)\.h\z};
			push @bad, $header unless $header =~ m{\Apolicy/} || ($other && $base{$other}) || $header eq 'handlers/tables.h';
		} elsif ($file =~ m{\Acommon/}) {
			push @bad, $header if $header =~ m{\Ahandlers/};
		} elsif (my ($group) = $file =~ m{\Ahandlers/(\w+)/}) {
			push @bad, $header if $header =~ m{\Ahandlers/(\w+)/} && $1 ne $group;
		}
	}
	is_deeply \@bad, [], "$file: its includes";
	unlike $text, qr/^#include <fcgi/m, "$file: no libfcgi" unless $file eq 'common/fcgi_io.c';

	$text =~ s{/\*.*?\*/}{}gs;
	$text =~ s{"(?:[^"\\]|\\.)*"}{""}g;
	for my $functions (sort keys %doors) {
		next if $file =~ $doors{$functions};
		my @calls = $text =~ /(?<![\w.>])($functions)\s*\(/g;
		is_deeply \@calls, [], "$file: calls none of $functions";
	}
}

done_testing;
