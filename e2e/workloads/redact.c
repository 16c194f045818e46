/* Leaves a mark of each class in a tape: paths, command lines, strings, names, addresses. Not by its own command line: that of the recorder
 * has it too, and is of another class. */
#define _GNU_SOURCE
#include <arpa/inet.h>
#include <fcntl.h>
#include <mqueue.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/mount.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

static void must(int ok, const char *what)
{
	if (!ok) {
		perror(what);
		exit(1);
	}
}

/* 127.77.66.55, where nobody else is */
static void connection(void)
{
	struct sockaddr_in at = { .sin_family = AF_INET, .sin_addr.s_addr = inet_addr("127.77.66.55") };
	socklen_t len = sizeof(at);
	int listener = socket(AF_INET, SOCK_STREAM, 0), client = socket(AF_INET, SOCK_STREAM, 0), server;

	must(!bind(listener, (struct sockaddr *)&at, sizeof(at)), "bind");
	must(!listen(listener, 1), "listen");
	must(!getsockname(listener, (struct sockaddr *)&at, &len), "getsockname");
	must(!connect(client, (struct sockaddr *)&at, sizeof(at)), "connect");
	server = accept4(listener, NULL, NULL, 0);
	must(server >= 0, "accept");
	close(client);
	close(server);
	close(listener);
}

static void __attribute__((noinline)) secret_function(void)
{
	/* a failure too */
	must(open("MARKpath-absent", O_RDONLY) < 0, "open");
}

/* names of files that have no slash */
static void names(void)
{
	mqd_t queue;

	unlink("link");
	must(!symlink("MARKpath-target", "link"), "symlink");
	unlink("link");
	must(!symlinkat("MARKpath-target", AT_FDCWD, "link"), "symlinkat");
	must(mount("MARKpath-device", "absent", "ext4", 0, NULL) < 0, "mount");
	queue = mq_open("/MARKpath-queue", O_CREAT | O_RDWR, 0600, NULL);
	must(queue >= 0 && !mq_unlink("/MARKpath-queue"), "mq_open");
	close(queue);
}

static int worker(void)
{
	int fd = open("MARKpath-file", O_CREAT | O_RDWR, 0600);
	pid_t child;

	must(fd >= 0 && write(fd, "x", 1) == 1, "write");
	prctl(PR_SET_NAME, "MARKcomm");
	must(memfd_create("MARKstring", 0) >= 0, "memfd_create");
	connection();
	names();
	for (int i = 0; i < 100; i++)
		secret_function();
	child = fork();
	if (!child) {
		execl("./prog", "prog", "MARKargv-child", NULL);
		_exit(1);
	}
	/* it says that it sleeps */
	while (access("ready", F_OK))
		usleep(1000);
	must(!kill(child, SIGTERM), "kill");
	must(waitpid(child, NULL, 0) == child, "wait");
	/* a command that is not there */
	execl("./MARKpath-no-program", "x", "MARKargv-failed", NULL);
	return 0;
}

int main(int argc, char **argv)
{
	if (argc > 1 && !strcmp(argv[1], "MARKargv"))
		return worker();
	if (argc > 1) {
		close(open("ready", O_CREAT | O_RDWR, 0600));
		for (;;)
			pause();
	}
	must(!mkdir("MARKpath", 0700), "mkdir");
	must(!link("redact", "MARKpath/prog"), "link");
	must(!chdir("MARKpath"), "chdir");
	execl("./prog", "prog", "MARKargv", NULL);
	return 1;
}
