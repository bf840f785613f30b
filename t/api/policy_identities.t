# Identities: each has what is its own, none sees another's, and their tokens are nowhere. The audit file.
use strict;
use warnings;

use FindBin;
use lib "$FindBin::Bin/../lib";

use AbxPolicy;
use AbxServer;
use Test::More;

my %token = (ci => 'ci-token-4711', reader => 'reader-token-4712', admin => 'admin-token-4713');

# sha256 of the reader's token.
my $server = start_with(<<'END', env => { CI_TOKEN => $token{ci}, ABX_SERVER_TOKEN => $token{admin} });
version: 1
endpoints:
  shell: {scopes: ["shell:run"], commands: {allow: ["only-for-ci *", "env", "/bin/sh -c env"]}, paths: {allow: [/ci-tree, "%BASE%"]}}
  files_stat: {scopes: ["files:read"]}
  files_list: {scopes: ["files:read", "files:deep"]}
  download: {limits: {rate: 5/d}}
  upload: {enabled: false}
identities:
  - {id: ci, token_env: CI_TOKEN, scopes: ["shell:run", "files:*"]}
  - {id: reader, token_sha256: "a49901796a494055bafaea6154cab256eba5302d836ce921a09febf8d8b86524", scopes: ["files:read"]}
audit: {file: "%DIR%/audit.jsonl"}
END
my $audit = $server->dir . '/audit.jsonl';

sub as {
	my ($who) = @_;

	return (no_token => 1, headers => { defined $who ? (Authorization => "Bearer $token{$who}") : () });
}

sub audit_lines {
	return map { AbxServer::decode_json($_) } split /\n/, AbxServer::slurp($_[0] || $audit);
}

subtest 'who may do what' => sub {
	for my $case (['ci', 200, 200, 403], ['reader', 200, 403, 403], ['admin', 200, 200, 403]) {
		my ($who, $stat, $list, $shell) = @$case;
		is $server->get('/files/stat?path=.', as($who))->{status}, $stat, "$who: one scope";
		is $server->get('/files/list?path=.', as($who))->{status}, $list, "$who: two scopes";
	}
	refused($server->post('/shell', { command => 'env' }, as('reader')), 403, 'missing_scope', 'policy:endpoints.shell', 'reader: no scope');
	refused($server->post('/commands/runshell', { cmd => 'env' }, as('reader')), 403, 'missing_scope', 'policy:endpoints.shell', 'nor by the command');
	is $server->post('/shell', { command => 'env' }, as('ci'))->{status}, 200, 'ci: a prefix';
	my @commands = map { $_->{name} } @{ $server->get('/commands', as('reader'))->{json}{commands} };
	is_deeply \@commands, ['download'], 'commands whose endpoint the caller may not use are not listed';
};

subtest 'nobody sees another' => sub {
	my $ci = $server->get('/capabilities', as('ci'));
	my $reader = $server->get('/capabilities', as('reader'));

	is_deeply $ci->{json}{identity}, { id => 'ci', scopes => ['shell:run', 'files:*'] }, 'ci sees itself';
	is_deeply $reader->{json}{identity}, { id => 'reader', scopes => ['files:read'] }, 'reader sees itself';
	unlike $ci->{content}, qr/reader|admin/, 'ci sees no other';
	unlike $reader->{content}, qr/"ci"|admin|shell:run|files:deep|only-for-ci|ci-tree/, 'reader sees no other, and nothing of what it may not use';
	my $shell = $reader->{json}{endpoints}{shell};
	is_deeply [@{$shell}{qw(enabled allowed reason rule)}], [JSON::PP::true(), JSON::PP::false(), 'missing_scope', 'policy:endpoints.shell'], 'only why';
	ok !exists $shell->{$_}, "no $_" for qw(scopes limits params);
	for my $path ('/capabilities', '/files/stat?path=/ci-tree', '/upload', '/v1/agents', '/nothing') {
		my $answer = $server->get($path, as(undef));
		next if $answer->{status} == 404 || $answer->{status} == 405;
		is $answer->{content}, '{"error": "unauthorized", "type": "AuthError"}', "$path: nothing without a credential";
	}
	refused($server->post('/upload', {}, as(undef)), 401, undef, undef, 'an endpoint that is off looks like any other then');
	is $server->get('/health', as(undef))->{status}, 200, 'health';
};

subtest 'tokens are nowhere' => sub {
	my $env = $server->post('/shell', { command => 'env' }, as('ci'))->{json}{stdout};

	unlike $env, qr/CI_TOKEN|4711/, 'a child has no token';
	for my $value ('{"CI_TOKEN": "x"}') {
		my $answer = $server->post('/shell', "{\"command\": \"env\", \"env\": $value}", as('ci'));
		refused($answer, 403, 'variable_not_allowed', undef, 'nor can it be given one of that name');
		$answer = $server->post('/env', "{\"vars\": $value}", as('ci'));
		refused($answer, 403, 'variable_not_allowed', undef, 'nor all children');
	}
	unlike $server->get('/env', as('ci'))->{content}, qr/CI_TOKEN|4711/, 'GET /env has none';
	for my $pid ($server->pid, AbxServer::children_of($server->pid)) {
		my $name = AbxServer::program_name($pid);
		unlike AbxServer::slurp("/proc/$pid/environ") // '', qr/4711|4713/, "$name: its environment";
		unlike AbxServer::slurp("/proc/$pid/cmdline") // '', qr/4711|4713/, "$name: its arguments";
	}
	$server->get("/files/stat?path=$token{reader}&token=$token{ci}", as('ci'));
	unlike $server->log_text, qr/4711|4713/, 'the log';
};

subtest 'audit' => sub {
	my ($line) = grep { $_->{endpoint} eq 'shell' && $_->{code} eq 'missing_scope' } audit_lines();

	is_deeply [sort keys %$line], [sort qw(time request_id identity remote endpoint method path status code rule duration_ms)], 'the members of a line';
	is_deeply [@{$line}{qw(identity remote method path status rule)}], ['reader', '127.0.0.1', 'POST', '/shell', 403, 'policy:endpoints.shell'], 'what they say';
	like $line->{time}, qr/\A\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d(\.\d+)?\+00:00\z/, 'the time';
	ok !(grep { $_->{status} < 400 } audit_lines()), 'calls that were allowed are not in it';
	ok scalar(grep { $_->{status} == 401 && !defined $_->{identity} } audit_lines()), 'calls without a credential are';
	unlike AbxServer::slurp($audit), qr/471[123]|only-for-ci|"env"/, 'no token and no body';
	is +(stat $audit)[2] & 0777, 0600, 'nobody else reads it';

	my $count = audit_lines();
	my $answer = $server->post('/shell', { command => 'not-allowed secret-word' }, no_token => 1,
				   headers => { Authorization => "Bearer $token{ci}", 'X-Request-Id' => 'my-request-1' });
	refused($answer, 403, 'command_not_allowed', 'policy:endpoints.shell', 'a command that is refused');
	my @new = (audit_lines())[$count ..  audit_lines() - 1];
	is scalar @new, 1, 'makes one line';
	is_deeply [@{ $new[0] }{qw(request_id identity code)}], ['my-request-1', 'ci', 'command_not_allowed'], 'with the id of the request';
	unlike AbxServer::slurp($audit), qr/secret-word/, 'and without the command';

	rename $audit, "$audit.1";
	my ($status, $out) = reload($server);
	is $status, 0, 'a reload' or diag $out;
	$server->get('/capabilities', as(undef));
	$server->get('/files/stat?path=x', as(undef));
	$server->post('/shell', {}, as(undef));
	is_deeply [sort map { $_->{path} } audit_lines()], ['/capabilities', '/files/stat', '/shell'], 'opens the file again, in every group';

	my $text = AbxServer::slurp($server->{policy});
	$text =~ s/^audit:.*/audit: {file: "$audit", all: true}/m;
	AbxServer::spew($server->{policy}, $text);
	($status, $out) = reload($server);
	is $status, 0, 'all: true' or diag $out;
	$server->get('/files/stat?path=x&secret=4714', as('ci'));
	$server->get('/health');
	my ($call) = grep { $_->{path} eq '/files/stat' && $_->{status} == 200 } audit_lines();
	is_deeply [@{$call}{qw(identity code rule)}], ['ci', undef, undef], 'every call makes a line';
	ok scalar(grep { $_->{path} eq '/health' } audit_lines()), '/health too';
	unlike AbxServer::slurp($audit), qr/4714/, 'no query';
};

is $server->stop, 0, 'the server ends';
done_testing;
