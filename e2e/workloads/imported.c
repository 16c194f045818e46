/* Does a known number of each thing that a log of strace shows: calls that fail, files, a pipe, processes that end in each way, threads. */
#define _GNU_SOURCE
#include <arpa/inet.h>
#include <fcntl.h>
#include <poll.h>
#include <pthread.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

enum { MISSING = 5, THREADS = 2, OF_THREAD = 7 };

/* Opens a file that does not exist, as often as asked. */
static void *missing(void *times) {
    for (long at = 0; at < (long)times; at++) open("/no/such/file", O_RDONLY | O_CLOEXEC);
    return NULL;
}

int main(int count, char **words) {
    if (count > 1 && !strcmp(words[1], "child")) {
        write(1, "from the child\n", 15);
        _exit(3);
    }
    char room[64];
    int fd = open("/dev/null", O_RDWR);
    for (int at = 0; at < 3; at++) write(fd, "0123456789", (size_t)at + 1);
    read(fd, room, sizeof room);
    close(fd);
    close(99);
    missing((void *)(long)MISSING);
    mkdir("made \"so\"", 0750);
    rmdir("made \"so\"");

    int ends[2];
    pipe2(ends, O_CLOEXEC);
    pid_t child = fork();
    if (child == 0) {
        dup2(ends[1], 1);
        char *arguments[] = {"imported", "child", NULL}, *environment[] = {NULL};
        execve("/proc/self/exe", arguments, environment);
        _exit(9);
    }
    close(ends[1]);
    while (read(ends[0], room, sizeof room) > 0) {
    }
    struct pollfd polled = {.fd = ends[0], .events = POLLIN};
    poll(&polled, 1, 0);
    waitpid(child, NULL, 0);

    child = fork();
    if (child == 0) {
        prctl(PR_SET_NAME, "waits");
        pause();
        _exit(9);
    }
    nanosleep(&(struct timespec){.tv_nsec = 50000000}, NULL);
    kill(child, SIGKILL);
    waitpid(child, NULL, 0);

    struct sockaddr_in nobody = {.sin_family = AF_INET, .sin_port = htons(1), .sin_addr.s_addr = htonl(INADDR_LOOPBACK)};
    fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
    connect(fd, (struct sockaddr *)&nobody, sizeof nobody);
    close(fd);

    pthread_t threads[THREADS];
    for (int at = 0; at < THREADS; at++) pthread_create(&threads[at], NULL, missing, (void *)(long)OF_THREAD);
    for (int at = 0; at < THREADS; at++) pthread_join(threads[at], NULL);
    exit(7);
}
