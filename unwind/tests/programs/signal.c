/* A handler below a chain of calls; with an argument on an alternate stack. */
#include <signal.h>
#include <stdlib.h>
#include <unistd.h>

#define NOINLINE __attribute__((noinline, noclone))

volatile int sink;
static char alternate[1 << 16];

NOINLINE int inner(int a) { return a * 3 + sink; }

static void handler(int number)
{
	sink = inner(number);
}

NOINLINE int third(int a)
{
	kill(getpid(), SIGUSR1);
	return a + sink;
}

NOINLINE int second(int a) { return third(a + 1) + sink; }

NOINLINE int first(int a) { return second(a + 1) + sink; }

int main(int argc, char **argv)
{
	struct sigaction action = { .sa_handler = handler };
	if (argc > 1) {
		stack_t stack = { .ss_sp = alternate, .ss_size = sizeof alternate };
		sigaltstack(&stack, NULL);
		action.sa_flags = SA_ONSTACK;
	}
	sigaction(SIGUSR1, &action, NULL);
	(void)argv;
	return first(1) == 12345;
}
