#!/usr/bin/perl
# code_run: the three languages, code of any length, time limits, what becomes of descendants, and runtimes that are missing.
use strict;
use warnings;

use FindBin;
use lib "$FindBin::Bin/../lib";

use AbxServer;
use Test::More;

my $NOTE = 'Security relies on container isolation, not application-level restrictions';
my $server = AbxServer->start(env => { ABX_SERVER_ENABLED_GROUPS => 'dev_tools', ABX_SERVER_TOKEN => 'the-token' }, token => 'the-token');
my $base = $server->base;
my %installed = map { my $name = $_; $name => scalar grep { -x "$_/$name" } split /:/, $ENV{PATH} } qw(python3 node bash);

sub run {
	my ($language, $code, %more) = @_;

	return $server->post('/code/run', { code => $code, defined $language ? (language => $language) : (), %more });
}

# The result of a run that has to succeed.
sub result {
	my $answer = run(@_);

	is $answer->{status}, 200, 'is answered' or diag substr $answer->{content}, 0, 500;
	return $answer->{json};
}

# Begin to run shell code; the caller who closes the socket has gone.
sub start_run {
	my ($code) = @_;
	my $socket = $server->connect;
	my $body = AbxServer::encode_json({ language => 'bash', code => $code });

	print $socket "POST /code/run HTTP/1.1\r\nHost: x\r\nX-Access-Token: the-token\r\nContent-Length: " . length($body) . "\r\n\r\n$body";
	return $socket;
}

sub alive {
	my ($mark) = @_;

	return grep { my $line = AbxServer::slurp("/proc/$_/cmdline"); defined $line && index($line, $mark) >= 0 && AbxServer::is_alive($_) }
	       map { m{/(\d+)\z} } glob '/proc/[0-9]*';
}

subtest 'an answer' => sub {
	my $answer = run('bash', 'echo out; echo err >&2; exit 3');

	is $answer->{status}, 200, 'whatever the exit code';
	like $answer->{content}, qr/\A\{"stdout": "out\\n", "stderr": "err\\n", "exit_code": 3, "language": "bash", "execution_time_ms": \d+\.\d{1,2}, "_security_note": "\Q$NOTE\E"\}\z/,
		'its fields, in their order';
	is result('bash', 'kill -9 $$')->{exit_code}, -9, 'killed by a signal';
	is result('bash', '')->{stdout}, '', 'no code';
	is result('bash', "printf 'caf\\351 \\303'")->{stdout}, "caf\x{fffd} \x{fffd}", 'what is no UTF-8 is replaced';
	is result('bash', "echo '\x{e4} \x{1f600}'")->{stdout}, "\x{e4} \x{1f600}\n", 'and what is arrives';
	is result('bash', '-x; echo "$-"')->{stdout} =~ /x/ ? 1 : 0, 0, 'code that begins with a dash is code';
};

subtest 'python' => sub {
	plan skip_all => 'no python3' unless $installed{python3};
	my $got = result(undef, "import sys\nprint(sys.argv, sys.stdin.read() == '', __name__)");
	is $got->{stdout}, "['-c'] True __main__\n", 'is the default, with nothing to read';
	is $got->{language}, 'python', 'as the answer says';
	is result('python', "raise SystemExit(7)")->{exit_code}, 7, 'an exit code';
	like result('python', "x = 1\n1/0")->{stderr}, qr/line 2.*ZeroDivisionError/s, 'an error with its line';
	like result('python', "print(")->{stderr}, qr/SyntaxError/, 'no Python';
};

subtest 'node' => sub {
	plan skip_all => 'no node' unless $installed{node};
	is result('node', 'console.log([1, 2].map(x => x * 2).join(), process.argv.length)')->{stdout}, "2,4 1\n", 'runs';
	is result('node', '-1; console.log("dash")')->{stdout}, "dash\n", 'code that begins with a dash';
	is result('node', '')->{exit_code}, 0, 'no code';
	is result('node', 'process.stdin.on("end", () => console.log("end")).resume()')->{stdout}, "end\n", 'nothing to read';
};

subtest 'where and with what' => sub {
	mkdir "$base/dir";
	is result('bash', 'pwd')->{stdout}, "$base\n", 'the base directory';
	is result('bash', 'pwd', cwd => 'dir')->{stdout}, "$base/dir\n", 'another one';
	is run('bash', 'pwd', cwd => '/')->{status}, 403, 'none outside';
	is result('bash', 'echo $V', env => { V => 'x y' })->{stdout}, "x y\n", 'a variable';
	is run('bash', 'true', env => { ABX_X => '1' })->{status}, 403, 'none of the server\'s';
	is result('bash', 'env | grep ABX_')->{stdout}, '', 'nor does the code see any';
	is result('bash', 'ls /proc/self/fd | tr "\n" " "')->{stdout} =~ /\A0 1 2 \d+ \z/ ? 1 : 0, 1, 'no descriptors but the three';
};

# Long code is not an argument. It sees the same as code that is one.
my %probes = (
	python => ['#', "import sys\nprint(sys.argv, repr(sys.stdin.read()), __name__, sys.path[0] == '', sorted(k for k in globals() if k[0] != '_'))\n1/0",
		   qr/\A\['-c'\] '' __main__ True \['sys'\]\n\z/, qr/File "<string>", line 4, in <module>\n(?:.*\n)*ZeroDivisionError/],
	node => ['//', 'console.log(typeof require, __filename, process.argv.length, this === globalThis); process.stdin.on("end", () => console.log("end")).resume(); import("fs").then(() => console.log("import"))',
		 qr/\Afunction \[eval\] 1 true\n(?=.*end\n)(?=.*import\n)/s, qr/\A\z/],
	bash => ['#', "echo \$0 \$# \$(cat)\ncat <<END\nhere\nEND\nexit 5", qr/\Abash 0\nhere\n\z/, qr/\A\z/],
);
for my $language (sort keys %probes) {
	my ($comment, $probe, $out, $err) = @{ $probes{$language} };

	subtest "long code: $language" => sub {
		plan skip_all => 'not installed' unless $installed{$language eq 'python' ? 'python3' : $language};
		for my $size (0, 131071, 131072, 1 << 20) {
			my $padding = $size > length($probe) + 4 ? $comment . 'x' x ($size - length($probe) - length($comment) - 1) . "\n" : "$comment\n";
			my $got = result($language, "$padding$probe");
			like $got->{stdout}, $out, "$size bytes: what it prints";
			like $got->{stderr}, $language eq 'python' ? qr/ZeroDivisionError/ : $err, 'and what goes wrong';
		}
	};
}

subtest 'nine megabytes of Python' => sub {
	plan skip_all => 'no python3' unless $installed{python3};
	my $got = result('python', "x = '''" . "0123456789abcde\n" x (9 * 65536) . "'''\nprint(len(x))");
	is $got->{stdout}, 9 * 1048576 . "\n", 'run';
	is $got->{stderr}, '', 'and nothing goes wrong';
};

subtest 'little room for arguments' => sub {
	my %env = map { ("L$_" => 'x' x 131000) } 1 .. 15;
	my $got = result('bash', '#' . 'x' x 131000 . "\necho \${#L1}", env => { %env, M => 'x' x 120000 });
	is $got->{stdout}, "131000\n", 'a large environment and long code';
};

subtest 'what is refused' => sub {
	for my $body ('{}', '{"code": null}', '{"code": 1}', '{"code": "a\u0000b"}', '{"code": "", "language": "ruby"}',
		      '{"code": "", "language": ""}', '{"code": "", "language": 3}', '{"code": "", "language": "Python"}',
		      '{"code": "", "env": []}', '{"code": "", "cwd": 1}') {
		my $answer = $server->post('/code/run', $body);
		is $answer->{status}, 400, $body;
		is $answer->{json}{type}, 'ValueError', 'the type';
	}
	like $server->post('/code/run', '{"code": "", "language": "ruby"}')->{json}{error}, qr/language.*python, node or bash.*ruby/, 'the message';
	is $server->post('/code/run', '{"code": "' . '#' x (10 << 20) . '"}')->{status}, 413, 'more than a body may have';
};

subtest 'time limits' => sub {
	my $answer = run('bash', "echo 'so far \x{e4}'; echo oops >&2; sleep 1000", timeout => 0.4);

	is $answer->{status}, 408, 'too long a run';
	is $answer->{json}{type}, 'TimeoutError', 'the type';
	like $answer->{json}{error}, qr/timed out after 0\.4s/, 'the message';
	is $answer->{json}{stdout}, "so far \x{e4}\n", 'with the output so far';
	is $answer->{json}{stderr}, "oops\n", 'of both streams';
	is result('bash', 'echo fine', timeout => $_)->{stdout}, "fine\n", "a limit of $_ means the default" for -1, 0, 'x', '5';
	is result('bash', 'echo fine', timeout => 1e9)->{stdout}, "fine\n", 'an enormous one';
	my $limits = $server->get('/capabilities')->{json}{endpoints}{code_run};
	is $limits->{limits}{timeout_seconds}, 300, 'the highest is told';
	is $limits->{params}{timeout}{default}, 30, 'and the default';
};

subtest 'descendants' => sub {
	my $mark = "86400.$$";

	is run('bash', "setsid sleep $mark & (sleep $mark &) ; nohup sleep $mark >/dev/null 2>&1 & sleep $mark", timeout => 0.5)->{status}, 408, 'a run that is too long';
	ok AbxServer::wait_for(sub { !alive($mark) }), 'takes them all';
	my $got = result('bash', "sleep $mark & echo \$!");
	my ($pid) = $got->{stdout} =~ /(\d+)/;
	ok AbxServer::is_alive($pid), 'one that ends by itself leaves its daemon';
	kill 'KILL', $pid;

	$mark = "86402.$$";
	my $socket = start_run("setsid sleep $mark & sleep $mark; true");
	ok AbxServer::wait_for(sub { alive($mark) >= 3 }), 'a caller';
	close $socket;
	ok AbxServer::wait_for(sub { !alive($mark) }), 'who leaves takes them all, too';
};

subtest 'many processes' => sub {
	my $mark = "86401.$$";
	my $code = "for i in \$(seq 200); do (trap '' TERM; sleep $mark) & done; wait";
	my $socket = start_run($code);

	ok AbxServer::wait_for(sub { alive($mark) >= 100 }), 'a heap of them';
	is $server->get('/health')->{status}, 200, 'the server answers';
	is result('bash', 'echo 1')->{stdout}, "1\n", 'and so does the group';
	close $socket;
	ok AbxServer::wait_for(sub { !alive($mark) }), 'they go with their caller';
};

subtest 'a lot of output' => sub {
	my $got = result('bash', "head -c 70000000 /dev/zero | tr '\\0' x");

	is length $got->{stdout}, 67108864, 'is cut at the limit';
	ok $got->{truncated}, 'as the answer says';
	is $got->{exit_code}, 0, 'and does not stop the code';
};

subtest 'without the runtimes' => sub {
	my $bin = AbxServer::temp_dir();
	my ($lighttpd) = grep { -x } map { "$_/lighttpd" } split(/:/, $ENV{PATH}), '/usr/sbin', '/usr/local/sbin';

	symlink $lighttpd, "$bin/lighttpd";
	my $other = AbxServer->start(env => { ABX_SERVER_ENABLED_GROUPS => 'dev_tools', PATH => "$bin" });
	for my $case (['python', 'python3', 'python3'], ['node', 'node', 'nodejs'], ['bash', 'bash', 'bash']) {
		my ($language, $program, $package) = @$case;
		my $answer = $other->post('/code/run', { code => '1', language => $language });
		is $answer->{status}, 500, "no $language";
		like $answer->{json}{error}, qr/'$program'.*package $package\b/, 'the message says what to install';
		is $answer->{json}{type}, 'FileNotFoundError', 'the type';
	}
	AbxServer::spew("$bin/python3", "#!/bin/sh\necho mine \"\$1\" \"\$2\"\n", 0755);
	is $other->post('/code/run', { code => 'the code' })->{json}{stdout}, "mine -c the code\n", 'the one on PATH is taken';
	$other->stop;
};

is $server->stop, 0, 'the server ends well';

done_testing;
