// Static probes in every form that a compiler writes arguments in, each passed a known number of times. The notes are written here, not by
// sys/sdt.h, so that each form is sure to occur. Prints how often the guarded probe was passed.
#include <stdio.h>

#define TIMES 101

/* A note of `stapsdt`: place, base, semaphore, then provider, name and arguments. */
#define PROBE_AT(place, semaphore, name, arguments, ...)                                                                 \
	__asm__ volatile("990:\t" place "\n"                                                                             \
			 "\t.pushsection .note.stapsdt,\"\",\"note\"\n"                                                  \
			 "\t.balign 4\n"                                                                                 \
			 "\t.4byte 992f-991f, 994f-993f, 3\n"                                                            \
			 "991:\t.asciz \"stapsdt\"\n"                                                                    \
			 "992:\t.balign 4\n"                                                                             \
			 "993:\t.8byte 990b, _.stapsdt.base, " semaphore "\n"                                            \
			 "\t.asciz \"forms\", \"" name "\", \"" arguments "\"\n"                                         \
			 "994:\t.balign 4\n"                                                                             \
			 "\t.popsection\n"                                                                               \
			 "\t.ifndef _.stapsdt.base\n"                                                                    \
			 "\t.pushsection .stapsdt.base,\"aG\",\"progbits\",.stapsdt.base,comdat\n"                       \
			 "\t.weak _.stapsdt.base\n"                                                                      \
			 "\t.hidden _.stapsdt.base\n"                                                                    \
			 "_.stapsdt.base:\t.space 1\n"                                                                   \
			 "\t.popsection\n"                                                                               \
			 "\t.endif\n" ::__VA_ARGS__)
#define PROBE(name, arguments, ...) PROBE_AT("nop", "0", name, arguments, __VA_ARGS__)

__attribute__((section(".probes"), used)) unsigned short forms_guarded_semaphore;

long forms_table[8] = {10, -11, 12, -13, 14, -15, 16, -17};
static const char *const texts[3] = {"first", "", "the \"third\""};

/* One name, a place for each caller. */
static inline __attribute__((always_inline)) void places(int place, int i)
{
	if (place == 2)
		PROBE("places", "-4@%0 -4@%1", "n"(2), "r"(i));
	else
		PROBE("places", "-4@%0 -4@%1", "r"(place), "m"(i));
}

int main(void)
{
	int guarded = 0;

	for (int i = 0; i < TIMES; i++) {
		volatile long on_stack = -3L * i;
		volatile unsigned char byte_on_stack = (unsigned char)(250 + i);
		long where = i % 8, big = i * 10000000019L;
		unsigned int top = 4000000000u + (unsigned int)i;
		short small = (short)-i;
		unsigned char low = (unsigned char)i;
		double real = i;
		/* its page is in memory then */
		volatile char first = *texts[i % 3];

		PROBE("registers", "-4@%k0 8@%1 4@%k2 -2@%w3 1@%b4 -8@%5", "r"(i), "r"(big), "r"(top), "r"(small), "r"(low), "r"(-big));
		PROBE("memory", "-8@%0 1@%1 -8@forms_table+8(%%rip) -8@(%2,%3,8) -8@-8(%2,%3,8)", "m"(on_stack), "m"(byte_on_stack),
		      "r"(&forms_table[1]), "r"(where ? where - 1 : 0));
		PROBE("constants", "-4@%0 8@%1 4@%2", "n"(-7), "n"(5), "n"(0xfffffff0));
		(void)first;
		PROBE("texts", "8@%0 -4@%k1 8@%2", "r"(texts[i % 3]), "r"(i), "r"(0L));
		PROBE("reals", "8f@%0 -4@%k1", "x"(real), "r"(i));
		/* what newer compilers write, and newer kernels patch */
		PROBE_AT(".byte 0x0f, 0x1f, 0x44, 0x00, 0x00", "0", "long_nop", "-4@%k0 8@forms_table(%%rip)", "r"(i));
		if (*(volatile unsigned short *)&forms_guarded_semaphore) {
			PROBE_AT("nop", "forms_guarded_semaphore", "guarded", "-4@%k0", "r"(i));
			guarded++;
		}
		places(0, i);
		places(1, i);
		places(2, i);
	}
	/* thirteen arguments, of which twelve are taken; an address where nothing is */
	PROBE("many", "4@$0 4@$1 4@$2 4@$3 4@$4 4@$5 4@$6 4@$7 4@$8 4@$9 4@$10 4@$11 4@$12", "r"(0));
	PROBE("absent", "8@(%0) -4@$1", "r"(16L));
	PROBE("none", "", "r"(0));
	printf("%d\n", guarded);
	return 0;
}
