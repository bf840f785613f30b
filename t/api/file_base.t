# A base directory that is removed and made again, and a policy that is read again: the right trees, by a new generation, and no call lost.
use strict;
use warnings;

use FindBin;
use lib "$FindBin::Bin/../lib";

use AbxServer;
use Test::More;

my $server = AbxServer->start;
my $base = $server->base;
my ($first) = $server->responders('file_ops');

sub upload { return $server->post('/upload', { path => $_[0], content_base64 => 'YQ==' }) }

is upload('x')->{status}, 200, 'before';
is $server->delete('/files?path=x')->{status}, 200, 'it is empty again';
rmdir $base or die $!;
is $server->get('/files/list?path=.')->{status}, 404, 'while it is gone there is nothing to list';
isnt upload('x')->{status}, 200, 'and nothing is written';
ok !-e $base, 'nothing makes it in the meantime';
is $server->get('/health')->{status}, 200, 'the server is well';
mkdir $base or die $!;
ok AbxServer::wait_for(sub { upload('x')->{status} == 200 }), 'a directory that was made again is used';
is AbxServer::slurp("$base/x"), 'a', 'the file is in it';
ok AbxServer::wait_for(sub { my @now = $server->responders('file_ops'); return @now == 1 && $now[0] != $first }), 'by a new generation';
is $server->post('/files/move', { source => 'x', destination => 'a/b' })->{status}, 200, 'with all rights in it';

# Another directory in its place.
my ($second) = $server->responders('file_ops');
rename $base, "$base.old";
mkdir "$base.new";
AbxServer::spew("$base.new/other", 'other');
rename "$base.new", $base;
ok AbxServer::wait_for(sub { upload('y')->{status} == 200 }), 'another directory in its place';
ok -e "$base/y" && !-e "$base.old/y", 'is the one that is written to';
is $server->get('/download?path=other&raw=1')->{content}, 'other', 'and read from';
ok AbxServer::wait_for(sub { my @now = $server->responders('file_ops'); return @now == 1 && $now[0] != $second }), 'once more by a new generation';

# SIGHUP: a watch that runs goes on, and new calls go to the new generation.
my ($third) = $server->responders('file_ops');
my $watch = $server->connect;
syswrite $watch, "GET /files/watch?path=.&timeout=60 HTTP/1.1\r\nHost: x\r\n\r\n";
my $text = AbxServer::read_until($watch, sub { $_[0] =~ /event: ready/ });
like $text, qr/event: ready/, 'a watch';
kill 'HUP', $server->pid;
ok AbxServer::wait_for(sub { grep { $_ != $third } $server->responders('file_ops') }), 'a new generation';
ok AbxServer::wait_for(sub { upload('z'); return (AbxServer::slurp("$base/z") || '') eq 'a' }), 'which works';
like AbxServer::read_until($watch, sub { $_[0] =~ /z"/ }), qr/event: created\ndata: .*\/z"/, 'and the watch of the old one sees it';
close $watch;
ok AbxServer::wait_for(sub { my @now = $server->responders('file_ops'); return @now == 1 && $now[0] != $third }), 'which ends with its last call';

$server->stop;
done_testing;
