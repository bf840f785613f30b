# Commands from manifests: what is listed, how arguments arrive, what comes back, and every way to fail.
use strict;
use warnings;

use FindBin;
use lib "$FindBin::Bin/../lib";

use AbxServer;
use Test::More;
use Time::HiRes ();

my $examples = "$FindBin::Bin/../../packaging/examples/commands";
my $server = AbxServer->prepare;
my $dir = $server->{commands};

sub program {
	my ($name, $text) = @_;

	AbxServer::spew("$dir/$name", $text, 0755);
}

sub manifest {
	my ($file, $content) = @_;

	AbxServer::spew("$dir/$file", ref $content ? AbxServer::encode_json($content) : $content);
}

# A program of shell, under a manifest of its own.
sub shell_command {
	my ($name, $script, %more) = @_;

	program("$name.sh", "#!/bin/sh\n$script\n");
	manifest("$name.json", { name => $name, exec => ["./$name.sh"], %more });
}

my @typed = map { { name => $_->[0], type => $_->[1] } } ['s', 'string'], ['i', 'integer'], ['f', 'float'], ['b', 'boolean'];
shell_command('echo', 'cat', description => 'Gives its arguments back.', args => [
	{ name => 's', type => 'string', required => JSON::PP::true, description => 'a text' },
	{ name => 'i', type => 'integer', default => 7 },
	{ name => 'f', type => 'float', default => 1.5 },
	{ name => 'b', type => 'boolean', default => JSON::PP::false },
	{ name => 'n' },
]);
shell_command('types', 'cat', args => \@typed);
manifest('alias.yml', "name: alias\nexec: [cat]\nargs:\n  - {name: i, type: int}\n  - {name: f, type: number}\n  - {name: b, type: bool}\n  - {name: s, type: str}\n");
manifest('stem.yaml', "exec: [/bin/echo, '\"named by its file\"']\n");
shell_command('raw', q(cat >/dev/null; printf ' [NaN, -Infinity, 123456789012345678901234567890, 1.0e2, {"a": 1, "a": 2}]\n\n'));
shell_command('empty', 'true');
shell_command('blank', 'echo; echo');
shell_command('garbage', 'echo this is not JSON');
shell_command('two', 'echo 1 2');
shell_command('cut', q(printf '{"a": '));
shell_command('bytes', q(printf '"\377"'));
shell_command('three', 'echo first >&2; echo "  the last: gr\303\274\303\237e" >&2; echo >&2; exit 3');
shell_command('silent', 'exit 3');
shell_command('killed', 'kill -9 $$');
shell_command('long', q(perl -e 'print STDERR "x" x 2000, "\n"; exit 1'));
shell_command('slow', "echo '{\"so\": 1'; echo err >&2; setsid sleep 600.$$ & exec sleep 600.$$", timeout => 0.3);
shell_command('sleeps', "exec sleep 600.$$");
shell_command('daemon', "setsid sleep 601.$$ & echo '\"gone\"'");
shell_command('fifty', q(exec perl -e 'print qq("), "x" x (50 << 20), qq(")'));
shell_command('endless', q(exec perl -e '$SIG{PIPE} = "DEFAULT"; print "x" x 65536 while 1'));
shell_command('noisy', q(perl -e 'print STDERR "x" x (10 << 20), "\nthe end\n"; exit 1'));
shell_command('where', q(printf '"%s %s %s"' "$PWD" "$(env | grep -c ^ABX_)" "$GREETING"));
shell_command('_hidden', 'echo 1', hidden => JSON::PP::true);
manifest('missing.json', { exec => ['./not-there'] });
manifest('argv.json', { exec => ['perl', '-e', 'print "[", join(", ", map { qq("$_") } @ARGV), "]"', 'a b', '', '$X'] });
program('beside', "#!/bin/sh\necho '\"beside\"'\n");
manifest('beside.json', { exec => ['beside'] });
manifest('upload.json', { exec => ['echo', '"replaced"'], description => 'Mine.' });
manifest('ignored.txt', 'not a manifest');
manifest('.hidden.json', 'not a manifest');
manifest('backup.json~', 'not a manifest');
AbxServer::spew("$dir/$_", AbxServer::slurp("$examples/$_"), 0755) for qw(wordcount.yaml wordcount.pl);
$server->launch;

sub call {
	my ($name, $args) = @_;

	return $server->post("/commands/$name", $args || {});
}

sub result_of {
	my ($answer) = @_;

	return $answer->{json} && exists $answer->{json}{result} ? $answer->{json}{result} : diag $answer->{content};
}

sub is_refused {
	my ($answer, $status, $type, $message, $name) = @_;

	is $answer->{status}, $status, "$name: $status";
	is $answer->{json}{type}, $type, "$name: $type";
	like $answer->{json}{error}, $message, "$name: message";
}

subtest 'the list' => sub {
	my $list = $server->get('/commands')->{json}{commands};
	my @names = map { $_->{name} } @$list;

	is_deeply [@names[0 .. 2]], [qw(download runshell upload)], 'built-ins first';
	is_deeply [@names[3 .. $#names]], [sort @names[3 .. $#names]], 'then by name';
	ok !grep({ /hidden|ignored|backup/ } @names), 'without what is hidden, or no manifest';
	my ($echo) = grep { $_->{name} eq 'echo' } @$list;
	is_deeply $echo, { name => 'echo', description => 'Gives its arguments back.', args => [
		{ name => 's', type => 'string', required => JSON::PP::true, default => undef, description => 'a text' },
		{ name => 'i', type => 'integer', required => JSON::PP::false, default => 7, description => '' },
		{ name => 'f', type => 'float', required => JSON::PP::false, default => 1.5, description => '' },
		{ name => 'b', type => 'boolean', required => JSON::PP::false, default => JSON::PP::false, description => '' },
		{ name => 'n', type => 'string', required => JSON::PP::false, default => undef, description => '' },
	] }, 'a command and its arguments';
	my ($alias) = grep { $_->{name} eq 'alias' } @$list;
	is_deeply [map { $_->{type} } @{ $alias->{args} }], [qw(integer float boolean string)], 'types by their other names';
	is_deeply [grep { $_->{name} eq 'upload' } @$list], [{ name => 'upload', description => 'Mine.', args => [] }], 'a built-in that was replaced';
};

subtest 'arguments' => sub {
	is call('echo', { s => 'x' })->{content}, '{"result": {"s": "x", "i": 7, "f": 1.5, "b": false}}', 'defaults; an argument without one stays away';
	is call('echo', { s => 'x', unknown => 1, i => 8 })->{content}, '{"result": {"s": "x", "i": 8, "f": 1.5, "b": false}}', 'unknown ones are dropped';
	is call('echo', '{"s": null, "i": null}')->{content}, '{"result": {"s": null, "i": null, "f": 1.5, "b": false}}', 'null goes as it was sent';
	is_refused(call('echo', {}), 400, 'ValueError', qr/\As: is required\z/, 'a required one that is missing');
	is_refused(call('echo', '[1]'), 400, 'ValueError', qr/object/, 'no object');
	is_refused(call('echo', '{"s": "a", "s": "b"}'), 400, 'ValueError', qr/duplicate/, 'a repeated key');
	is_refused(call('echo', '{"s": NaN}'), 400, 'ValueError', qr/JSON/, 'NaN');

	my %text = ('5' => '5', '5.7' => '5.7', 'true' => 'true', '[1, {"a": null}]' => '[1, {\"a\": null}]', '"a\u0000b\u00e9"' => "a\\u0000b\xc3\xa9");
	is call('types', qq({"s": $_}))->{content}, qq({"result": {"s": "$text{$_}"}}), "string from $_" for sort keys %text;
	my %integer = (5 => 5, '5.7' => 5, '-5.7' => -5, '"5"' => 5, '" -5\n"' => -5, '"1_000"' => 1000, 'true' => 1, '1e3' => 1000,
		       '"9223372036854775807"' => '9223372036854775807');
	is call('types', qq({"i": $_}))->{content}, qq({"result": {"i": $integer{$_}}}), "integer from $_" for sort keys %integer;
	is_refused(call('types', qq({"i": $_})), 400, 'ValueError', qr/\Ai: /, "integer from $_")
		for '"5.7"', '"x"', '""', '"5 5"', '[]', '{}', '1e300', '"9223372036854775808"', '"--5"', '"1__0"', '"0x10"', '"5\u0000"';
	my %float = (5 => '5.0', '5.7' => '5.7', '"5.7"' => '5.7', '" 1e3 "' => '1000.0', 'false' => '0.0', '".5"' => '0.5');
	is call('types', qq({"f": $_}))->{content}, qq({"result": {"f": $float{$_}}}), "float from $_" for sort keys %float;
	is_refused(call('types', qq({"f": $_})), 400, 'ValueError', qr/\Af: /, "float from $_") for '"x"', '"nan"', '"inf"', '"1e999"', '[]', '""', '"0x1p3"';
	my %boolean = map({ $_ => 'true' } 'true', '"true"', '"TRUE"', '"Yes"', '"1"', 1), map({ $_ => 'false' } 'false', '"False"', '"no"', '"NO"', '"0"', 0);
	is call('types', qq({"b": $_}))->{content}, qq({"result": {"b": $boolean{$_}}}), "boolean from $_" for sort keys %boolean;
	is_refused(call('types', qq({"b": $_})), 400, 'ValueError', qr/\Ab: /, "boolean from $_") for '"on"', '""', 2, '1.5', '[]', '"yes "';
	is call('alias', '{"i": "5", "f": 1, "b": "no", "s": 1}')->{content}, '{"result": {"i": 5, "f": 1.0, "b": false, "s": "1"}}', 'types by their other names';
	my ($large, $utf8) = map { $_ x 100_000 } 'gr\u00fc\u00dfe \"', "gr\xc3\xbc\xc3\x9fe \\\"";
	ok call('types', qq({"s": "$large"}))->{content} eq qq({"result": {"s": "$utf8"}}), 'a large text';
};

subtest 'results' => sub {
	is call('raw')->{content}, '{"result": [NaN, -Infinity, 123456789012345678901234567890, 1.0e2, {"a": 1, "a": 2}]}', 'byte for byte, without the blanks around';
	is call('raw')->{headers}{'content-type'}, 'application/json; charset=utf-8', 'as JSON';
	is call($_)->{content}, '{"result": null}', "$_: null" for qw(empty blank);
	is_refused(call($_), 500, 'RuntimeError', qr/not JSON/, $_) for qw(garbage two cut bytes);
	my $fifty = $server->raw("POST /commands/fifty HTTP/1.1\r\nHost: x\r\nConnection: close\r\nContent-Length: 0\r\n\r\n");
	is length $fifty =~ s/\A.*?\r\n\r\n//sr, (50 << 20) + 2 + length('{"result": }'), 'fifty megabytes';
	is result_of(call('stem')), 'named by its file', 'a command that is named by its file';
	is_deeply result_of(call('argv')), ['a b', '', '$X'], 'argv as it is written; the program by PATH';
	is result_of(call('beside')), 'beside', 'a program beside the manifest';
	is result_of(call('_hidden')), 1, 'a hidden command runs';
	is result_of(call('upload')), 'replaced', 'a built-in that was replaced';
	$server->post('/env', { vars => { GREETING => 'hello' } });
	is result_of(call('where')), $server->base . ' 0 hello', 'in the base directory, with the variables of POST /env and without the own ones of the server';
};

subtest 'failures' => sub {
	is_refused(call('three'), 500, 'RuntimeError', qr/\A  the last: gr\x{fc}\x{df}e\z/, 'the last line of standard error');
	is_refused(call('silent'), 500, 'RuntimeError', qr/status 3\z/, 'nothing on standard error');
	is_refused(call('killed'), 500, 'RuntimeError', qr/signal 9\z/, 'killed');
	is call('long')->{json}{error}, 'x' x 2000, 'a long line';
	is call('noisy')->{json}{error}, 'the end', 'the last of many megabytes';
	is_refused(call('missing'), 500, 'FileNotFoundError', qr/not-there/, 'a program that does not exist');
	is_refused(call('endless'), 500, 'RuntimeError', qr/larger than 67108864 bytes/, 'output without end');
	is_refused(call('nothing'), 404, 'ValueError', qr/\AUnknown command: nothing\z/, 'an unknown command');
	is $server->get('/commands/echo')->{status}, 405, 'another method';
};

sub sleepers {
	my ($seconds) = @_;

	return grep { my $line = AbxServer::slurp("/proc/$_/cmdline"); defined $line && $line eq "sleep\0$seconds.$$\0" && AbxServer::is_alive($_) }
	       map { m{/(\d+)\z} } glob '/proc/[0-9]*';
}

subtest 'time and children' => sub {
	my $answer = call('slow');

	is_refused($answer, 500, 'TimeoutError', qr/\ACommand timed out after 0\.3s\z/, 'past its time');
	is_deeply [@{ $answer->{json} }{qw(stdout stderr)}], ["{\"so\": 1\n", "err\n"], 'with the output so far';
	ok AbxServer::wait_for(sub { !sleepers(600) }), 'and nothing is left of it';
	is result_of(call('daemon')), 'gone', 'a daemon does not hold the call';
	my @daemons = sleepers(601);
	is scalar @daemons, 1, 'and lives on';
	kill 'KILL', @daemons;

	# In two parts, so that lighttpd has to wait for the second: only then does it look for a client that leaves before its answer begins.
	my $socket = $server->connect;
	syswrite $socket, "POST /commands/sleeps HTTP/1.1\r\nHost: x\r\nContent-Length: 2\r\n\r\n{";
	Time::HiRes::sleep(0.1);
	syswrite $socket, '}';
	ok AbxServer::wait_for(sub { sleepers(600) }), 'a call is under way';
	close $socket;
	ok AbxServer::wait_for(sub { !sleepers(600) }), 'the program goes with its client';
};

subtest 'the example' => sub {
	is_deeply result_of(call('wordcount', { text => "one two\nthree\n" })), { lines => 2, words => 3, characters => 14 }, 'a text';
	is_deeply result_of(call('wordcount', { text => "one two\nthree\n", least => '4' })), { lines => 2, words => 1, characters => 14 }, 'long words';
	is_refused(call('wordcount', { text => '' }), 500, 'RuntimeError', qr/\Athere is nothing to count\z/, 'its own error');
};

subtest 'the warning' => sub {
	like $server->log_text, qr/warning abx-commands: \S+upload\.json: the command 'upload' replaces the built-in one/, 'in the log';
	is_deeply [grep { /replaces the built-in/ } @{ $server->get('/capabilities')->{json}{warnings} }],
		["$dir/upload.json: the command 'upload' replaces the built-in one"], 'in /capabilities';
};

is $server->stop, 0, 'the end';
done_testing;
