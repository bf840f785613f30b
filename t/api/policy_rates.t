# How often, and how many at a time: per identity and endpoint, across groups, and through the death of whoever counts.
use strict;
use warnings;

use FindBin;
use lib "$FindBin::Bin/../lib";

use AbxPolicy;
use AbxServer;
use Test::More;
use Time::HiRes ();

my $server = start_with(<<'END', env => { A_TOKEN => 'token-a', B_TOKEN => 'token-b' });
version: 1
endpoints:
  files_stat: {limits: {rate: 3/h}}
  download: {limits: {rate: 2/s}}
  shell: {limits: {rate: 6/h}}
  commands_run: {limits: {rate: 100/h}}
  code_run: {limits: {max_concurrent: 1}}
  upload: {limits: {rate: 2/h}}
groups: [dev_tools]
identities:
  - {id: a, token_env: A_TOKEN, scopes: ["*"]}
  - {id: b, token_env: B_TOKEN, scopes: ["*"]}
END

sub as {
	my ($who) = @_;

	return (no_token => 1, headers => { 'X-Access-Token' => "token-$who" });
}

sub stat_ {
	my ($who) = @_;

	return $server->get('/files/stat?path=.', as($who));
}

# Code that says that it runs, by a file, and goes on until another file is there; in the background. Gives the pid of the client.
sub start_code {
	my ($who, $name) = @_;
	my $base = $server->base;
	my $pid = fork // die;

	if ($pid == 0) {
		my $answer = $server->post('/code/run', { language => 'bash', code => "touch $base/$name; while [ ! -e $base/go ]; do sleep 0.05; done" }, as($who));
		POSIX::_exit($answer->{status} == 200 ? 0 : 1);
	}
	AbxServer::wait_for(sub { -e "$base/$name" });
	return $pid;
}

subtest 'a rate' => sub {
	is stat_('a')->{status}, 200, "call $_ of three" for 1 .. 3;
	my $answer = stat_('a');
	refused($answer, 429, 'rate_limited', 'policy:endpoints.files_stat', 'the fourth');
	is $answer->{json}{type}, 'RateLimitError', 'its type';
	is $answer->{json}{endpoint}, 'files_stat', 'its endpoint';
	like $answer->{headers}{'retry-after'}, qr/\A\d+\z/, 'Retry-After';
	ok $answer->{headers}{'retry-after'} > 3000 && $answer->{headers}{'retry-after'} <= 3600, 'until the first has left the window';
	is stat_('b')->{status}, 200, 'another identity has its own';
	is $server->get('/files/list?path=.', as('a'))->{status}, 200, 'as has another endpoint';
	my $limits = $server->get('/capabilities', as('a'))->{json}{endpoints}{files_stat}{limits};
	is_deeply $limits, { rate => '3/h' }, 'it is told';
};

subtest 'what counts' => sub {
	is $server->post('/upload', 'not json', as('a'))->{status}, 400, 'a call that fails later has passed the gate';
	is $server->post('/upload', {}, as('a'))->{status}, 400, 'so it counts';
	refused($server->post('/upload', 'not json', as('a')), 429, 'rate_limited', 'policy:endpoints.upload', 'and the rate comes before the body');
	is $server->post('/upload', {}, no_token => 1)->{status}, 401, 'but after the credentials';
	is $server->post('/upload', {}, as('b'))->{status}, 400, 'a call that was refused has not counted for another';
};

subtest 'the windows slide' => sub {
	my (@passed, $refused);
	my $end = Time::HiRes::time() + 4;

	while (Time::HiRes::time() < $end) {
		my $before = Time::HiRes::time();
		my $status = $server->get('/download?path=none', as('a'))->{status};
		$status == 429 ? $refused++ : push @passed, [$before, Time::HiRes::time()];
	}
	ok $refused, 'some calls were refused';
	cmp_ok scalar @passed, '>=', 4, 'others passed again and again';
	# A call passed some time between its sending and its answer: the third of any three is more than a second after the first.
	my @close = grep { $passed[$_ + 2][1] - $passed[$_][0] < 1 } 0 .. $#passed - 2;
	is_deeply \@close, [], 'in no second more than two';
};

subtest 'across groups' => sub {
	is $server->post('/shell', { command => 'true' }, as('a'))->{status}, 200, '/shell' for 1 .. 2;
	is $server->post('/commands/runshell', { cmd => 'true' }, as('a'))->{status}, 200, 'runshell' for 1 .. 2;
	is $server->get('/commands', as('a'))->{status}, 200, 'listing commands is no call of theirs' for 1 .. 10;
	is $server->post('/capabilities/check', { endpoint => 'shell' }, as('a'))->{json}{allowed}, JSON::PP::true(), 'nor is asking';
	is $server->post('/shell', { command => 'true' }, as('a'))->{status}, 200, 'a fifth';
	is $server->post('/commands/runshell', { cmd => 'true' }, as('a'))->{status}, 200, 'and a sixth';
	refused($server->post('/shell', { command => 'true' }, as('a')), 429, 'rate_limited', 'policy:endpoints.shell', '/shell');
	refused($server->post('/commands/runshell', { cmd => 'true' }, as('a')), 429, 'rate_limited', 'policy:endpoints.shell', 'runshell');
	my ($answer) = $server->post('/commands/runshell', { cmd => 'true' }, as('a'));
	like $answer->{headers}{'retry-after'}, qr/\A\d+\z/, 'with Retry-After';
};

subtest 'through deaths and reloads' => sub {
	for my $group (qw(file_ops process)) {
		my $old = $server->responder($group);
		kill 'KILL', $old;
		ok AbxServer::wait_for(sub { my $new = $server->responder($group); $new && $new != $old }), "$group: a new responder";
	}
	refused(stat_('a'), 429, 'rate_limited', 'policy:endpoints.files_stat', 'it goes on counting');
	refused($server->post('/shell', { command => 'true' }, as('a')), 429, 'rate_limited', 'policy:endpoints.shell', 'as does the other');
	my ($status, $out) = reload($server);
	is $status, 0, 'a reload' or diag $out;
	refused(stat_('a'), 429, 'rate_limited', 'policy:endpoints.files_stat', 'changes nothing');
	is stat_('b')->{status}, 200, 'for nobody' for 1 .. 2;
	refused(stat_('b'), 429, 'rate_limited', 'policy:endpoints.files_stat', 'of them');
	my $text = AbxServer::slurp($server->{policy});
	$text =~ s{rate: 3/h}{rate: 4/h};
	AbxServer::spew($server->{policy}, $text);
	($status, $out) = reload($server);
	is $status, 0, 'a higher rate' or diag $out;
	is stat_('a')->{status}, 200, 'lets one more pass';
	refused(stat_('a'), 429, 'rate_limited', 'policy:endpoints.files_stat', 'and no more');
};

subtest 'at a time' => sub {
	my $run = sub { $server->post('/code/run', { language => 'bash', code => 'echo x' }, as($_[0])) };
	my $base = $server->base;

	is $run->('a')->{status}, 200, 'one' for 1 .. 20;
	my $client = start_code('a', 'one');
	my $answer = $run->('a');
	refused($answer, 429, 'rate_limited', 'policy:endpoints.code_run', 'one too many');
	is $answer->{json}{type}, 'ResourceError', 'its type';
	is $run->('b')->{status}, 200, 'another identity has its own';
	AbxServer::spew("$base/go", '');
	waitpid $client, 0;
	is $?, 0, 'the first ends well';
	is $run->('a')->{status}, 200, 'and leaves room';
	unlink "$base/go";

	$client = start_code('a', 'two');
	refused($run->('a'), 429, 'rate_limited', 'policy:endpoints.code_run', 'again one too many');
	my $old = $server->responder('dev_tools');
	kill 'KILL', $old;
	waitpid $client, 0;
	isnt $?, 0, 'a responder that dies';
	is AbxServer::wait_for(sub { my $status = $run->('a')->{status}; $status == 200 ? 200 : undef }), 200, 'takes its calls along';

	$client = start_code('a', 'three');
	kill 'KILL', $client;
	waitpid $client, 0;
	is AbxServer::wait_for(sub { my $status = $run->('a')->{status}; $status == 200 ? 200 : undef }), 200, 'as does a client that goes';
};

is $server->stop, 0, 'the server ends';
done_testing;
