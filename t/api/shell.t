# POST /shell.
use strict;
use warnings;

use FindBin;
use lib "$FindBin::Bin/../lib";

use AbxServer;
use Socket ();
use Test::More;
use Time::HiRes qw(time);

my $server = AbxServer->start(env => { ABX_SERVER_TOKEN => 'a-secret-token', OUTER => 'kept' }, token => 'a-secret-token');
my $base = $server->base;

sub shell {
	my ($command, %more) = @_;

	return $server->post('/shell', { command => $command, %more });
}

sub is_refused {
	my ($answer, $status, $type, $message, $name) = @_;

	is $answer->{status}, $status, "$name: $status";
	is $answer->{json}{type}, $type, "$name: $type";
	like $answer->{json}{error}, $message, "$name: message";
}

is_deeply shell('echo hello world')->{json}, { stdout => "hello world\n", stderr => '', exit_code => 0 }, 'a command';
is shell(q{printf '%s|' "a b" c\ d 'e"f' ""})->{json}{stdout}, 'a b|c d|e"f||', 'words as shlex splits them';
is shell('echo $HOME | cat')->{json}{stdout}, "\$HOME | cat\n", 'no shell: nothing is interpreted';
is shell(q{bash -c 'exit 7'})->{json}{exit_code}, 7, 'an exit code';
is shell(q{bash -c 'kill -15 $$'})->{json}{exit_code}, -15, 'a signal';
is shell(q{bash -c 'echo err >&2'})->{json}{stderr}, "err\n", 'standard error';
is shell('pwd')->{json}{stdout}, "$base\n", 'the base directory';
mkdir "$base/sub";
is shell('pwd', cwd => 'sub')->{json}{stdout}, "$base/sub\n", 'cwd';
is shell('cat')->{json}{stdout}, '', 'standard input is empty';
is shell(q{bash -c 'echo "$A$OUTER"'}, env => { A => '1' })->{json}{stdout}, "1kept\n", 'the environment: the server\'s, and env';
AbxServer::spew("$base/prog", "#!/bin/sh\necho from prog\n", 0755);
is shell('./prog')->{json}{stdout}, "from prog\n", 'a program relative to cwd';
is shell('mine', env => { PATH => $base })->{status}, 500, 'PATH of the child is searched';
rename "$base/prog", "$base/mine";
is shell('mine', env => { PATH => "$base:/bin:/usr/bin" })->{json}{stdout}, "from prog\n", 'and found there';

# Nothing of the server's reaches a child.
my $env = shell('env')->{json}{stdout};
unlike $env, qr/^ABX_/m, 'no ABX_ variable in a child';
unlike $env, qr/a-secret-token/, 'no token';
my @fds = split ' ', shell('ls /proc/self/fd')->{json}{stdout};
is_deeply [sort { $a <=> $b } @fds], [0, 1, 2, 3], 'no descriptor but 0 to 2, and the directory that ls has open';
my $dump = AbxServer::build_dir() . '/t/helper/fd_dump';
SKIP: {
	skip 'the helper fd_dump is not built', 1 unless -x $dump;
	is_deeply [shell($dump)->{json}{stdout} =~ /^(\d+)/mg], [0, 1, 2], 'exactly 0, 1 and 2';
}
like shell('bash -c "ps -o pgid= $$"')->{json}{stdout}, qr/\d/, 'a process group';

# Errors.
is_refused($server->post('/shell', {}), 400, 'ValueError', qr/\Acommand: is required\z/, 'no command');
is_refused(shell(''), 400, 'ValueError', qr/blank/, 'an empty command');
is_refused(shell(" \t\n"), 400, 'ValueError', qr/blank/, 'a blank command');
is_refused(shell(['ls']), 400, 'ValueError', qr/\Acommand: must be a string/, 'a list');
is_refused(shell("a\0b"), 400, 'ValueError', qr/NUL/, 'a NUL');
is_refused(shell('echo "x'), 500, 'ValueError', qr/No closing quotation/, 'an open quote');
is_refused(shell('echo \\'), 500, 'ValueError', qr/No escaped character/, 'an open escape');
is_refused(shell('no-such-program x'), 500, 'FileNotFoundError', qr/no-such-program/, 'a program that does not exist');
is_refused(shell('/etc/passwd'), 500, 'PermissionError', qr/passwd/, 'a file that is no program');
is_refused(shell('true', cwd => '/etc'), 403, 'PermissionError', qr/outside/, 'cwd outside');
is_refused(shell('true', cwd => 'missing'), 403, 'PermissionError', qr/cwd/, 'a missing cwd');
is_refused(shell('true', cwd => 'mine'), 403, 'PermissionError', qr/cwd/, 'cwd is a file');
is shell('true', cwd => 'missing')->{json}{code}, 'path_not_allowed', 'its code';
is_refused(shell('true', cwd => 5), 400, 'ValueError', qr/\Acwd: /, 'cwd is a number');
is_refused(shell('true', env => 'A=1'), 400, 'ValueError', qr/\Aenv: /, 'env is a string');
is_refused(shell('true', env => { A => 1 }), 400, 'ValueError', qr/\Aenv: /, 'a value that is no string');
is_refused(shell('true', env => { ABX_SERVER_TOKEN => 'x' }), 403, 'PermissionError', qr/ABX_/, 'a variable of the server');
is shell('true', env => { abx_x => 'x' })->{json}{code}, 'variable_not_allowed', 'in any case of letters';

# Time.
my $start = time;
my $answer = shell(q{bash -c 'echo so far; echo also >&2; sleep 60 & sleep 60'}, timeout => 0.5);
is_refused($answer, 500, 'TimeoutError', qr/\ACommand timed out after 0\.5s\z/, 'past its time');
is $answer->{json}{stdout}, "so far\n", 'with the output so far';
is $answer->{json}{stderr}, "also\n", 'on both streams';
cmp_ok time - $start, '<', 30, 'long before the children would end by themselves';
is shell('sleep 0.1', timeout => $_)->{json}{exit_code}, 0, 'a timeout that is none means the default' for 0, -1, 'soon', JSON::PP::true;
is_refused(shell('sleep 60', timeout => 1), 500, 'TimeoutError', qr/after 1s\z/, 'a whole number is told as one');

# A descendant that keeps the pipe open holds nothing up, and lives on.
$start = time;
$answer = shell(q{bash -c 'sleep 30 & echo $!'});
is $answer->{json}{exit_code}, 0, 'a background child';
cmp_ok time - $start, '<', 15, 'does not hold the call';
my $pid = $answer->{json}{stdout} + 0;
ok AbxServer::is_alive($pid), 'it lives';
kill 'KILL', $pid if $pid > 1;

# Output.
is shell(q{bash -c 'printf "\xff\xfe caf\xc3\xa9"'})->{json}{stdout}, "\x{fffd}\x{fffd} caf\x{e9}", 'bytes that are not UTF-8';
my $long = shell(q{bash -c 'head -c 3000000 /dev/zero | tr "\0" x'})->{json};
is length $long->{stdout}, 3_000_000, 'long output is whole';
ok !exists $long->{truncated}, 'and not marked';
# (The answer is looked at as text: a parser in Perl takes its time over 64 MiB.)
my $call = AbxServer::encode_json({ command => q{bash -c 'head -c 70000000 /dev/zero | tr "\0" x'} });
my $huge = $server->raw("POST /shell HTTP/1.0\r\nX-Access-Token: a-secret-token\r\nContent-Length: ${\ length $call}\r\n\r\n$call");
$huge =~ s/\A.*?\r\n\r\n//s;
is substr($huge, 0, 12), '{"stdout": "', 'output past 64 MiB';
is substr($huge, 12, 64 << 20) =~ tr/x/x/, 64 << 20, 'is cut there';
is substr($huge, 12 + (64 << 20)), '", "stderr": "", "exit_code": 0, "truncated": true}', 'marked, and the command went on to its end';

# A caller who leaves takes the command along, however the request came and however the connection ends. Before an answer has begun lighttpd looks for that only
# where it had to wait for the request.
for my $parts ('in one piece', 'in two pieces', 'in two pieces and slowly', 'in one piece, by one who only stops sending', 'in one piece, by one who breaks off') {
	my $socket = $server->connect;
	my $marker = "$base/left";
	my $body = AbxServer::encode_json({ command => "bash -c 'echo \$\$ > $marker; sleep 300'" });
	my $head = "POST /shell HTTP/1.1\r\nHost: x\r\nX-Access-Token: a-secret-token\r\nContent-Length: ${\ length $body}\r\n\r\n";

	syswrite $socket, $parts =~ /two/ ? $head : "$head$body";
	Time::HiRes::sleep(0.1) if $parts =~ /slowly/;
	syswrite $socket, $body if $parts =~ /two/;
	ok AbxServer::wait_for(sub { (AbxServer::slurp($marker) || '') =~ /\d+\n/ }), "a command runs that came $parts";
	my ($left) = AbxServer::slurp($marker) =~ /(\d+)/;
	unlink $marker;
	if ($parts =~ /stops/) {
		shutdown $socket, 1;
	} else {
		if ($parts =~ /breaks/) {
			# Only a connection that was seen can be missed.
			Time::HiRes::sleep(0.3);
			setsockopt $socket, Socket::SOL_SOCKET(), Socket::SO_LINGER(), pack 'ii', 1, 0;
		}
		close $socket;
	}
	ok AbxServer::wait_for(sub { !AbxServer::is_alive($left) }, 20), 'and ends when its caller leaves';
}

unlike $server->log_text, qr/a-secret-token/, 'the token is not in the log';
done_testing;
