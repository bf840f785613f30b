# abxctl and a server of this machine: finding, starting and stopping it, and every subcommand with the real one.
use strict;
use warnings;

use Fcntl qw(:flock);
use File::Temp qw(tempdir);
use FindBin;
use POSIX ();
use Test::More;

use lib "$FindBin::Bin/../lib";
use AbxServer;
use Ctl;

my (@ours, @servers);
END {
	my $status = $?;
	kill 'TERM', grep { AbxServer::is_alive($_) } @servers;
	kill 'KILL', @ours;
	waitpid $_, 0 for @ours;
	$? = $status;
}

# ---- finding a server of this machine

# A process that passes for an abxd: it holds the lock of a run directory. `pid` is what it writes into abxd.pid.
sub impostor {
	my (%options) = @_;
	my $dir = $options{dir};
	pipe my $in, my $out or die;
	my $pid = fork // die;
	if ($pid == 0) {
		close $in;
		if ($options{uid}) {
			POSIX::setgid($options{uid});
			POSIX::setuid($options{uid});
		}
		mkdir $dir;
		open my $lock, '<', $dir or POSIX::_exit(98);
		flock $lock, LOCK_EX if !$options{unlocked};
		AbxServer::spew("$dir/abxd.pid", ($options{pid} // $$) . "\n");
		$SIG{HUP} = sub {
			AbxServer::spew("$dir/hup", 'x');
			AbxServer::spew("$dir/reload.status", '{"serial": 1, "ok": true, "revision": "r1"}');
		};
		# A server does not end at once.
		$SIG{TERM} = sub {
			select undef, undef, undef, 0.2;
			AbxServer::spew("$dir/ended", 'x');
			POSIX::_exit(0);
		};
		print $out "ready\n";
		close $out;
		sleep 1 while 1;
	}
	push @ours, $pid;
	close $out;
	<$in>;
	return $pid;
}

subtest 'run directories' => sub {
	my %env = (ABX_RUN_DIR => "$tmp/run");
	my $nothing = qr/no server is running in \Q$tmp\E\/run\n$/;
	for my $name ('stop', 'reload') {
		check(ctl({env => \%env}, $name), 3, '', $nothing, "$name: no run directory");
	}
	check(ctl({env => \%env}, 'status'), 3, qr/^not running: .*$nothing/, '', 'status: no run directory');
	my $stranger = impostor(dir => "$tmp/run", unlocked => 1);
	check(ctl({env => \%env}, 'stop'), 3, '', $nothing, 'a process that does not hold the lock');
	my $other = impostor(dir => "$tmp/other");
	AbxServer::spew("$tmp/run/abxd.pid", "$other\n");
	check(ctl({env => \%env}, 'stop'), 3, '', $nothing, 'a process that holds the lock of another directory');
	for my $text ('', 'x', "0\n", "-1\n", "$other", "$other x\n", "99999999999\n") {
		AbxServer::spew("$tmp/other/abxd.pid", $text);
		is ctl({env => {ABX_RUN_DIR => "$tmp/other"}}, 'stop')->{status}, 3, 'abxd.pid: ' . $json->encode($text);
	}
	ok AbxServer::is_alive($stranger) && AbxServer::is_alive($other), 'none of them was harmed';
	AbxServer::spew("$tmp/other/abxd.pid", "$other\n");
	check(ctl({env => {ABX_RUN_DIR => "$tmp/other"}}, 'reload'), 0, qr/pid $other.* r1/, '', 'reload');
	ok AbxServer::wait_for(sub { -e "$tmp/other/hup" }), 'sends SIGHUP';
	check(ctl({env => {ABX_RUN_DIR => "$tmp/other"}}, 'stop'), 0, "stopped (pid $other)\n", '', 'stop');
	ok -e "$tmp/other/ended", 'waits for the end';
	ok !AbxServer::is_alive($other), 'it has ended';
};

# An ordinary user's server without ABX_RUN_DIR has a private directory.
subtest 'private run directories' => sub {
	my $uid = $> ? 0 : 65534;
	my $place = tempdir(DIR => $tmp);
	chmod 01777, $place;
	my $copy = "$tmp/abxctl-copy";
	AbxServer::spew($copy, AbxServer::slurp($abxctl), 0755);
	my $as_user = sub {
		my ($out, $pid) = (File::Temp->new(DIR => $tmp), fork // die);
		if ($pid == 0) {
			open STDOUT, '>', "$out";
			open STDERR, '>&', \*STDOUT;
			if ($uid) {
				POSIX::setgid($uid);
				POSIX::setuid($uid);
			}
			@ENV{qw(TMPDIR ABX_RUN_DIR)} = ($place, '');
			exec {$copy} 'abxctl', @_ or POSIX::_exit(99);
		}
		waitpid $pid, 0;
		return {status => $? >> 8, out => AbxServer::slurp("$out"), err => ''};
	};
	check($as_user->('stop'), 3, qr/no server is running in \/run\/abx/, '', 'none');
	my $first = impostor(dir => "$place/abx-first", uid => $uid);
	check($as_user->('reload'), 0, qr/pid $first/, '', 'one is found');
	my $second = impostor(dir => "$place/abx-second", uid => $uid);
	check($as_user->('stop'), 1, qr/several servers .*ABX_RUN_DIR.*\Q$place\E\/abx-(first.*abx-second|second.*abx-first)/, '', 'with two it cannot be known which');
	ok AbxServer::is_alive($first) && AbxServer::is_alive($second), 'so none is stopped';
	kill 'KILL', $second;
	waitpid $second, 0;
	check($as_user->('stop'), 0, "stopped (pid $first)\n", '', 'the one that is left is stopped');
};

# ---- the real server

# A pattern for a text in which a word does not occur.
sub without {
	my ($word) = @_;
	return qr/\A(?!.*\Q$word\E)/s;
}

subtest 'a real server' => sub {
	mkdir "$tmp/base";
	my %settings = (ABX_RUN_DIR => "$tmp/real", ABX_SERVER_BASE_DIR => "$tmp/base", ABX_SERVER_HOST => '127.0.0.1', ABX_COMMANDS_DIR => "$tmp/none",
		ABX_PTY_PORT => AbxServer::free_port(), ABX_SERVER_TOKEN => 'right');
	my $start = ctl({env => \%settings}, 'start', '--port', 0);
	check($start, 0, qr/http:\/\/127\.0\.0\.1:\d+/, '', 'start') or return;
	my ($url) = $start->{out} =~ /(http:\/\/[\d.:]+)/;
	my ($pid) = AbxServer::slurp("$tmp/real/abxd.pid") =~ /^(\d+)\n$/;
	push @servers, $pid;
	my %env = (ABX_TEMPLATE_URL => $url, ABX_RUN_DIR => "$tmp/real");
	my $anonymous = sub { ctl({env => \%env}, @_) };
	my $wrong = sub { ctl({env => {%env, ABX_SERVER_TOKEN => 'wrong'}}, @_) };
	my $right = sub { my $options = ref $_[0] ? shift : {}; ctl({env => {%env, ABX_SERVER_TOKEN => 'right'}, %$options}, @_) };

	check($anonymous->('health'), 0, "ok\n", '', 'it answers');
	my %refused = (%arguments, get => ['/capabilities'], post => ['/shell'], delete => ['/files']);
	for my $name (qw(discover call get post delete capabilities upload download shell)) {
		check($anonymous->($name, @{$refused{$name}}), 1, '', qr/^abxctl: unauthorized: set ABX_SERVER_TOKEN\n$/, "$name without a token");
		check($wrong->($name, @{$refused{$name}}), 1, '', qr/^abxctl: unauthorized: .*does not know/, "$name with a wrong token");
	}
	check($right->('status'), 0, qr/^running\n.*\bpid +$pid\n.*\burl +\Q$url\E\n.* core +up +3 of 3 .*\n.* process +up .*\n.* dev_tools +off\n/s, '', 'status');
	my $bare = ctl({env => {ABX_RUN_DIR => "$tmp/real", ABX_SERVER_TOKEN => 'right'}}, 'status');
	check($bare, 0, qr/\burl +\Q$url\E\n.* core +up/s, '', 'status finds the URL in the run directory');
	my $far = ctl({env => {ABX_TEMPLATE_URL => $url, ABX_SERVER_TOKEN => 'right'}}, 'status');
	check($far, 0, qr/^running\n +url +\Q$url\E\n/, '', 'status of a server that is known by its URL alone');
	check($anonymous->('status'), 0, qr/^running\n/, qr/^abxctl: unauthorized/, 'status without a token');

	my $commands = $json->decode($right->('discover', '--json')->{out});
	is_deeply [sort map { $_->{name} } @$commands], [qw(download runshell upload)], 'discover --json';
	check($right->('discover'), 0, qr/^runshell +\S.*\n    cmd +string +required +\S/m, '', 'discover');
	is $json->decode($right->('capabilities')->{out})->{api_version}, 2, 'capabilities';
	is $json->decode($right->('get', '/capabilities')->{out})->{api_version}, 2, 'get';
	check($right->('get', '/no/such'), 1, '', "abxctl: Not found: /no/such\n", 'get: no such path');
	check($right->('post', '/capabilities/check', '{"endpoint": "shell"}'), 0, qr/"endpoint": "shell"/, '', 'post');
	check($right->('post', '/capabilities/check', '{"endpoint": '), 1, '', qr/^abxctl: Invalid JSON/, 'post: not JSON');
	check($right->('post', '/capabilities/check'), 1, '', qr/^abxctl: .*endpoint/, 'post: no body');
	check($right->('delete', '/health'), 1, '', qr/^abxctl: /, 'delete: a method that the path does not have');

	check($right->('call', 'runshell', 'cmd=echo "$A"; pwd; echo oops >&2; exit 3', 'env:={"A": "x y"}', "cwd=$tmp/base"), 3,
		"x y\n$tmp/base\n", "oops\n", 'call runshell, typed arguments');
	check($right->('call', 'runshell', 'cmd:=5'), 127, '', qr/5/, 'call: a number becomes a string');
	check($right->('call', 'runshell', 'cmd=x', 'env=x'), 1, '', qr/^abxctl: .*env/, 'call: the wrong type');
	check($right->('call', 'runshell', 'cmd=sleep 60', 'timeout:=0.05'), 1, '', qr/^abxctl: .*timed out.* \(request \S+\)\n$/, 'call: a failure of the server carries the request id');
	check($right->('call', 'runshell'), 1, '', qr/^abxctl: .*cmd/, 'call: an argument is missing');
	check($right->('call', 'nosuch'), 1, '', qr/^abxctl: .*nosuch/, 'call: no such command');
	check($right->('call', 'runshell', 'cmd=kill -TERM $$'), 143, '', '', 'call: killed by a signal');
	check($right->('shell', 'printf', '%s|', 'a b', "it's", '', '$HOME', "\n", 'ü'), 0, "a b|it's||\$HOME|\n|ü|", '', 'shell: words arrive as they are');
	check($right->('shell', "sh -c 'echo out; echo err >&2; exit 7'"), 7, "out\n", "err\n", 'shell: a command line');
	check($right->('shell', 'env'), 0, without('right'), '', 'shell: no token in the environment');
	check($right->('shell', '/no/such/program'), 1, '', qr/^abxctl: .* \(request \S+\)\n$/, 'shell: no such program');
	check($right->('shell', "'"), 1, '', qr/^abxctl: /, 'shell: a quote that is not closed');

	my $bytes = join '', map { pack 'N', $_ * 2654435761 % 4294967296 } 1 .. 50_000;
	AbxServer::spew("$tmp/bytes", $bytes);
	check($right->('upload', "$tmp/bytes", 'dir/b ü.bin'), 0, "$tmp/base/dir/b ü.bin: 200000 bytes\n", '', 'upload');
	check($right->('call', 'runshell', 'cmd=cd dir && cat "b ü.bin" "b ü.bin" > twice'), 0, '', '', 'a command makes another file of it');
	check($right->('download', 'dir/twice', "$tmp/twice"), 0, "$tmp/twice: 400000 bytes\n", '', 'download');
	ok AbxServer::slurp("$tmp/twice") eq $bytes x 2, 'byte for byte';
	ok $right->('download', 'dir/b ü.bin', '-')->{out} eq $bytes, 'download to standard output';
	check($right->({in => ''}, 'upload', '-', 'empty'), 0, qr/: 0 bytes/, '', 'upload of nothing');
	is $right->('download', 'empty', '-')->{out}, '', 'and its download';
	check($right->('download', 'missing', "$tmp/missing"), 1, '', qr/^abxctl: /, 'download: no such file');
	ok !-e "$tmp/missing", 'leaves nothing';
	check($right->('upload', "$tmp/bytes", '/etc/x'), 1, '', qr/^abxctl: /, 'upload out of the base directory');
	AbxServer::spew("$tmp/script", "#!/bin/sh\necho \"hello \$1\"\n");
	check($right->('upload', "$tmp/script", 'script.sh'), 0, qr/script\.sh/, '', 'a script');
	check($right->('shell', 'sh', 'script.sh', 'w o'), 0, "hello w o\n", '', 'runs');

	my $again = ctl({env => \%settings}, 'start', '--port', 0);
	isnt $again->{status}, 0, 'a second start in the same run directory fails';
	like $again->{err}, qr/^abxd: .*already running.*\b$pid\b/, 'with the message of abxd';
	check(ctl({env => {%settings, ABX_LOG_LEVEL => 'loud'}}, 'start'), 78, '', qr/^abxd: ABX_LOG_LEVEL/, 'a wrong setting: the status of abxd is passed on');
	check($right->('reload'), 0, qr/pid $pid.* 44136fa355b3678a/, '', 'reload');
	check($right->('health', '--wait', 10), 0, "ok\n", '', 'it answers after that');
	check(ctl({env => \%env}, 'stop'), 0, "stopped (pid $pid)\n", '', 'stop');
	ok !AbxServer::is_alive($pid), 'it has ended';
	check(ctl({env => \%env}, 'stop'), 3, '', qr/no server is running/, 'stop again');
	check($right->('status'), 3, qr/^not running/, '', 'status again');
	check($right->('get', '/health'), 7, '', qr/connect/i, 'nothing answers');

	my $run = launch({env => \%settings}, 'start', '--foreground', '--port=0');
	push @servers, $run->{pid};
	AbxServer::wait_for(sub { AbxServer::slurp("$run->{out}") =~ /http:\S+\d/ || !AbxServer::is_alive($run->{pid}) });
	is AbxServer::slurp("$tmp/real/abxd.pid"), "$run->{pid}\n", 'start --foreground becomes abxd';
	check(ctl({env => \%env}, 'stop'), 0, "stopped (pid $run->{pid})\n", '', 'stop');
	check(finish($run), 0, qr/http/, qr/^/, 'and it ends with success');
};

subtest 'no abxd' => sub {
	my $copy = "$tmp/alone/abxctl";
	mkdir "$tmp/alone";
	AbxServer::spew($copy, AbxServer::slurp($abxctl), 0755);
	check(ctl({program => $copy, env => {PATH => "$tmp/none"}}, 'start'), 1, '', qr/^abxctl: abxd was found neither/, 'neither beside it nor on PATH');
	mkdir "$tmp/path";
	AbxServer::spew("$tmp/path/abxd", "#!/bin/sh\necho \"abxd \$*\"; echo message >&2; echo \"\$ABX_SERVER_TOKEN\"; exit 42\n", 0755);
	check(ctl({program => $copy, env => {PATH => "$tmp/path:/bin:/usr/bin", ABX_SERVER_TOKEN => 'tok'}}, 'start', '--port', '17'), 42,
		"abxd --port=17\ntok\n", "message\n", 'on PATH: its outputs and its status are passed on');
};

done_testing;
