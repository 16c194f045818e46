/* Does a known number of each thing that tools count: parity DIR [DISK]. Prints its port and pids. */
#define _GNU_SOURCE
#include <arpa/inet.h>
#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

enum { CONNECTIONS = 5, FILES = 3, WORKS = 500, CALLS = 20000, SLEEPS = 200 };

static void need(int fine, const char *what) {
    if (!fine) {
        perror(what);
        exit(1);
    }
}

/* Called 500 times. */
__attribute__((noinline)) int work(int n) {
    volatile int sum = 0;
    for (int i = 0; i < n; i++) sum += i;
    return sum;
}

static void all(int fd, size_t size, int writes) {
    static char room[65536];
    while (size > 0) {
        size_t part = size < sizeof room ? size : sizeof room;
        ssize_t done = writes ? write(fd, room, part) : read(fd, room, part);
        need(done > 0, "bytes");
        size -= (size_t)done;
    }
}

/* Connection i sends (i + 1) * 10000 bytes and gets 2000 back. */
static void connections(void) {
    int listener = socket(AF_INET, SOCK_STREAM, 0);
    struct sockaddr_in at = {.sin_family = AF_INET, .sin_addr.s_addr = htonl(INADDR_LOOPBACK)};
    socklen_t length = sizeof at;
    need(!bind(listener, (struct sockaddr *)&at, sizeof at) && !listen(listener, 8), "listen");
    need(!getsockname(listener, (struct sockaddr *)&at, &length), "getsockname");
    printf("port %d pid %d", ntohs(at.sin_port), getpid());
    pid_t server = fork();
    need(server >= 0, "fork");
    if (server == 0) {
        for (int i = 0; i < CONNECTIONS; i++) {
            int fd = accept(listener, NULL, NULL);
            need(fd >= 0, "accept");
            all(fd, (size_t)(i + 1) * 10000, 0);
            all(fd, 2000, 1);
            close(fd);
        }
        _exit(0);
    }
    printf(" server %d\n", server);
    fflush(stdout);
    for (int i = 0; i < CONNECTIONS; i++) {
        int fd = socket(AF_INET, SOCK_STREAM, 0);
        need(!connect(fd, (struct sockaddr *)&at, sizeof at), "connect");
        all(fd, (size_t)(i + 1) * 10000, 1);
        all(fd, 2000, 0);
        close(fd);
    }
    need(waitpid(server, NULL, 0) == server, "waitpid");
}

/* File f: 10 writes and 7 reads of 1000 * (f + 1) bytes. */
static void files(const char *dir) {
    for (int f = 0; f < FILES; f++) {
        char path[256];
        snprintf(path, sizeof path, "%s/file%d", dir, f);
        int fd = open(path, O_CREAT | O_WRONLY | O_TRUNC, 0600);
        for (int i = 0; i < 10; i++) all(fd, 1000 * (size_t)(f + 1), 1);
        close(fd);
        fd = open(path, O_RDONLY);
        for (int i = 0; i < 7; i++) all(fd, 1000 * (size_t)(f + 1), 0);
        close(fd);
    }
}

/* 20 writes of 4 KiB, 10 of 64 KiB, 10 reads of 8 KiB. */
static void disk(const char *path) {
    void *room = NULL;
    need(!posix_memalign(&room, 65536, 65536), "memory");
    memset(room, 1, 65536);
    int fd = open(path, O_RDWR | O_DIRECT);
    need(fd >= 0, path);
    for (int i = 0; i < 20; i++) need(pwrite(fd, room, 4096, i * 131072L) == 4096, "pwrite");
    for (int i = 0; i < 10; i++) need(pwrite(fd, room, 65536, (40 + i) * 131072L) == 65536, "pwrite");
    for (int i = 0; i < 10; i++) need(pread(fd, room, 8192, (80 + i) * 131072L) == 8192, "pread");
    close(fd);
}

int main(int count, char **arguments) {
    need(count >= 2, "parity DIR [DISK]");
    connections();
    files(arguments[1]);
    if (count > 2) disk(arguments[2]);
    for (int i = 0; i < 4; i++) need(!kill(getpid(), 0), "kill");
    for (int i = 0; i < 3; i++) need(kill(0x7ffffff0, SIGTERM) < 0 && errno == ESRCH, "kill");
    for (int i = 0; i < 2; i++) need(!syscall(SYS_tgkill, getpid(), getpid(), 0), "tgkill");
    for (int i = 0; i < CALLS; i++) syscall(SYS_getppid);
    for (int i = 0; i < WORKS; i++) work(2000);
    for (int i = 0; i < SLEEPS; i++) nanosleep(&(struct timespec){.tv_nsec = 500000}, NULL);
    return 0;
}
