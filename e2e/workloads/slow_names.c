// Calls getppid now and then, for ever. Its debug information is small and takes minutes to read: FUNCTIONS functions share one list of RANGES empty
// ranges, and a reader that keeps none of them walks the list for each. SALT makes it another file.
#define TEXT(x) #x
#define NUMBER(x) TEXT(x)

static void call(void) {
	long result;
	__asm__ volatile("syscall" : "=a"(result) : "a"(110L) : "rcx", "r11", "memory");
}

void _start(void) {
	volatile long salt = SALT;
	for (;;) {
		call();
		for (volatile int i = 0; i < 1000000; i++)
			salt++;
	}
}

// a compile unit (1) with low_pc and high_pc, and functions (2) that have nothing but ranges
__asm__(".section .debug_abbrev,\"\",@progbits\n"
	".uleb128 1, 0x11\n .byte 1\n .uleb128 0x11, 1, 0x12, 7, 0, 0\n"
	".uleb128 2, 0x2e\n .byte 0\n .uleb128 0x55, 0x17, 0, 0\n"
	".uleb128 0\n"
	".section .debug_info,\"\",@progbits\n"
	".long unit_end - unit\n"
	"unit: .short 4\n .long 0\n .byte 8\n"
	".uleb128 1\n .quad _start\n .quad 0x100\n"
	".rept " NUMBER(FUNCTIONS) "\n .byte 2\n .long 0\n .endr\n"
	".byte 0\n"
	"unit_end:\n"
	".section .debug_ranges,\"\",@progbits\n"
	".rept " NUMBER(RANGES) "\n .quad 16, 16\n .endr\n"
	".quad 0, 0\n"
	".text\n");
