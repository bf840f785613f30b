#!/usr/bin/perl
# env_get and env_set: what is shown and hidden, all or nothing, and that every later child of every group has what was set.
use strict;
use warnings;

use FindBin;
use lib "$FindBin::Bin/../lib";

use AbxServer;
use POSIX ();
use Test::More;

my $server = AbxServer->start(env => { ABX_SERVER_ENABLED_GROUPS => 'dev_tools', ABX_SERVER_TOKEN => 'the-token', PLAIN => 'from the start',
	MY_TOKEN => 's1', my_secret => 's2', API_KEY => 's3', Db_Password => 's4', THE_CREDENTIALS => 's5', MONKEY => 's6', EMPTY => '' },
	token => 'the-token');

sub variables {
	my ($query) = @_;
	my $answer = $server->get('/env' . ($query || ''));

	is $answer->{status}, 200, 'GET /env is answered' or diag $answer->{content};
	return $answer->{json}{variables};
}

sub set {
	my ($vars) = @_;

	return $server->post('/env', { vars => $vars });
}

# The environment of a child of each group that starts some.
sub children {
	my $shell = $server->post('/shell', { command => 'env -0' })->{json}{stdout};
	my $run = $server->post('/commands/runshell', { cmd => 'env -0' })->{json}{result}{stdout};
	my $code = $server->post('/code/run', { language => 'bash', code => 'env -0' })->{json}{stdout};

	return map { my %env = map { /\A([^=]*)=(.*)\z/s ? ($1 => $2) : () } split /\0/, $_; \%env } $shell, $run, $code;
}

subtest 'what is shown' => sub {
	my $vars = variables();

	is $vars->{PLAIN}, 'from the start', 'a variable of the server';
	is $vars->{EMPTY}, '', 'an empty one';
	is $vars->{PATH}, $ENV{PATH}, 'PATH';
	ok !exists $vars->{$_}, "$_ is hidden" for qw(MY_TOKEN my_secret API_KEY Db_Password THE_CREDENTIALS MONKEY);
	is_deeply [grep { /\AABX_/i } keys %$vars], [], "nor are the server's own settings";
	unlike $server->get('/env')->{content}, qr/the-token/, 'its token least of all';
};

subtest 'filter' => sub {
	is_deeply variables('?filter=PLAIN'), { PLAIN => 'from the start' }, 'one name';
	is_deeply variables('?filter=EMPTY,%20PLAIN%20,NONE,,MY_TOKEN,ABX_SERVER_TOKEN'), { PLAIN => 'from the start', EMPTY => '' },
		'several; blanks around them do not count, and what is hidden stays so';
	is_deeply variables('?filter=plain'), {}, 'the case counts';
	is_deeply variables('?filter=PLAI,PLAINER'), {}, 'and the whole name';
	ok exists variables('?filter=')->{PLAIN}, 'an empty one is none';
	is $server->get('/env?filter=A&filter=B')->{status}, 400, 'two are refused';
};

subtest 'setting' => sub {
	my $answer = $server->post('/env', '{"vars": {"LANG": "C.UTF-8", "NEW": "a b\nc=d", "UMLAUT": "\u00e4", "PLAIN": "changed"}}');

	is $answer->{status}, 200, 'is answered';
	is $answer->{content}, '{"updated": ["LANG", "NEW", "UMLAUT", "PLAIN"]}', 'with the names in their order';
	is_deeply variables('?filter=LANG,NEW,UMLAUT,PLAIN'), { LANG => 'C.UTF-8', NEW => "a b\nc=d", UMLAUT => "\x{e4}", PLAIN => 'changed' },
		'GET /env has them';
	for my $env (children()) {
		is $env->{NEW}, "a b\nc=d", 'a child has them';
		is $env->{PLAIN}, 'changed', 'in the place of what was there';
		is $env->{MY_TOKEN}, 's1', 'beside what is hidden from callers only';
		is_deeply [grep { /\AABX_/ } keys %$env], [], 'and nothing of the server';
	}
	is $server->post('/shell', { command => 'printenv NEW', env => { NEW => 'own' } })->{json}{stdout}, "own\n", 'a call\'s own variable counts more';
	is set({ PLAIN => '' })->{status}, 200, 'setting to nothing';
	is variables()->{PLAIN}, '', 'is not removing';
	is set({})->{content}, '{"updated": []}', 'setting none';
	is set({ ANOTHER_TOKEN => 'x' })->{status}, 200, 'a name that is hidden can be set';
	ok !exists variables()->{ANOTHER_TOKEN}, 'and is hidden';
	is((children())[0]{ANOTHER_TOKEN}, 'x', 'from callers only');
};

subtest 'values that are no strings' => sub {
	my $answer = $server->post('/env', '{"vars": {"V1": true, "V2": false, "V3": null, "V4": 12, "V5": 0.1, "V6": 1e22, "V7": {"a": [1, "\u00e4", null]}, "V8": [], "V9": -0.0, "VA": 100.0}}');

	is $answer->{status}, 200, 'are taken';
	is_deeply variables('?filter=V1,V2,V3,V4,V5,V6,V7,V8,V9,VA'), { V1 => 'True', V2 => 'False', V3 => 'None', V4 => '12', V5 => '0.1',
		V6 => '1e+22', V7 => "{\"a\": [1, \"\x{e4}\", null]}", V8 => '[]', V9 => '-0.0', VA => '100.0' }, 'and become what str() makes of them';
};

subtest 'what is refused, whole' => sub {
	my @cases = (
		[403, 'variable_not_allowed', map { { GOOD => 1, $_ => 'x' } } qw(PATH path Home USER shell ABX_ ABX_SERVER_TOKEN abx_x)],
		[400, undef, { GOOD => 1, '' => 'x' }, { GOOD => 1, 'A=B' => 'x' }, { GOOD => 1, B => "a\0b" }],
		[413, 'payload_too_large', { GOOD => 1, B => 'x' x 131072 }, { map { ("GOOD$_" => 1) } 1 .. 2000 },
		 { map { ("GOOD$_" => 'x' x 100000) } 1 .. 12 }],
	);

	for my $case (@cases) {
		my ($status, $code, @vars) = @$case;
		for my $vars (@vars) {
			my $answer = set($vars);
			is $answer->{status}, $status, "refused with $status" or diag substr $answer->{content}, 0, 200;
			is $answer->{json}{code}, $code, 'its code';
		}
	}
	is $server->post('/env', $_)->{status}, 400, "$_" for '{}', '{"vars": []}', '{"vars": "A=B"}', '{"vars": null}', '{"vars": 1}';
	is_deeply [grep { /\AGOOD/ } keys %{ variables() }], [], 'nothing of all that was set';
};

subtest 'long values' => sub {
	is set({ LONG => 'x' x 131066 })->{status}, 200, 'as long as the system takes';
	is $server->post('/shell', { command => '/bin/sh -c "echo ${#LONG}"' })->{json}{stdout}, "131066\n", 'and a child has it';
	is set({ LONG => '' })->{status}, 200, 'is made short again';
};

subtest 'they last' => sub {
	is set({ LASTING => 'yes' })->{status}, 200, 'set';
	my $pid = $server->responder('system');
	kill 'KILL', $pid;
	ok AbxServer::wait_for(sub { my $now = $server->responder('system'); $now && $now != $pid }), 'the responder dies and comes again';
	is variables()->{LASTING}, 'yes', 'they are still there';
	kill 'HUP', $server->pid;
	ok AbxServer::wait_for(sub { my $now = $server->responder('system'); $now && $now != $pid }), 'a reload';
	is variables()->{LASTING}, 'yes', 'changes nothing';
	is_deeply [map { $_->{LASTING} } children()], ['yes', 'yes', 'yes'], 'for children either';
	my @files = grep { -f && (AbxServer::slurp($_) // '') =~ /LASTING/ } glob($server->run . '/*'), glob($server->run . '/*/*');
	is_deeply \@files, [], 'and no file has them';
};

subtest 'many at once' => sub {
	my @pids;

	for my $writer (1 .. 6) {
		my $pid = fork;
		die "fork: $!" unless defined $pid;
		if (!$pid) {
			my $bad = 0;
			delete $server->{http};
			$bad += set({ "W$writer" => $_ })->{status} != 200 for 1 .. 20;
			POSIX::_exit($bad);
		}
		push @pids, $pid;
	}
	for my $pid (@pids) {
		waitpid $pid, 0;
		is $?, 0, 'a writer';
	}
	is_deeply variables('?filter=W1,W2,W3,W4,W5,W6'), { map { ("W$_" => '20') } 1 .. 6 }, "nobody's last word is lost";
};

is $server->stop, 0, 'the server ends well';

subtest 'another start' => sub {
	my $other = AbxServer->start;

	ok !exists $other->get('/env')->{json}{variables}{LASTING}, 'begins anew';
	$other->stop;
};

done_testing;
