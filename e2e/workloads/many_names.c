// Writes a library of COUNT functions to argv[1], maps it, and waits. The names overlap in one text of 4,000 letters, so that each is
// another one and long: whoever keeps every name needs COUNT times 2 KB. Any user can have such a file mapped.
// With NAME a function is called that, and all code is breakpoints, on which the kernel puts no probe.
#include <elf.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#define LETTERS 4000
#define CODE 4096

int main(int argc, char **argv) {
	size_t count = argc > 2 ? strtoul(argv[2], NULL, 10) : 1;
	const char *name = argc > 3 ? argv[3] : "";
	size_t texts = count / LETTERS + 2, name_at = 1 + texts * (LETTERS + 1), names = name_at + strlen(name) + 1;
	char section_names[] = "\0.text\0.dynsym\0.dynstr\0.names";
	size_t symbols_at = 2 * CODE, names_at = symbols_at + (count + 1) * sizeof(Elf64_Sym);
	size_t section_names_at = names_at + names, sections_at = (section_names_at + sizeof section_names + 7) & ~7UL;
	size_t len = sections_at + 5 * sizeof(Elf64_Shdr);
	char *file = calloc(1, len);
	Elf64_Ehdr *head = (Elf64_Ehdr *)file;
	memcpy(head->e_ident, "\177ELF\2\1\1", 7);
	head->e_type = ET_DYN;
	head->e_machine = EM_X86_64;
	head->e_version = 1;
	head->e_ehsize = sizeof *head;
	head->e_phoff = sizeof *head;
	head->e_phentsize = sizeof(Elf64_Phdr);
	head->e_phnum = 1;
	head->e_shoff = sections_at;
	head->e_shentsize = sizeof(Elf64_Shdr);
	head->e_shnum = 5;
	head->e_shstrndx = 4;
	*(Elf64_Phdr *)(file + sizeof *head) =
		(Elf64_Phdr){.p_type = PT_LOAD, .p_flags = PF_R | PF_X, .p_filesz = 2 * CODE, .p_memsz = 2 * CODE, .p_align = CODE};
	memset(file + CODE, *name ? 0xcc : 0xc3, CODE);
	Elf64_Sym *symbols = (Elf64_Sym *)(file + symbols_at);
	for (size_t i = 1; i <= count; i++)
		symbols[i] = (Elf64_Sym){.st_name = *name && i == count ? name_at : i, .st_info = ELF64_ST_INFO(STB_GLOBAL, STT_FUNC), .st_shndx = 1, .st_value = CODE + i % CODE, .st_size = 1};
	for (size_t i = 0; i < texts; i++)
		memset(file + names_at + 1 + i * (LETTERS + 1), 'a' + i % 26, LETTERS);
	strcpy(file + names_at + name_at, name);
	memcpy(file + section_names_at, section_names, sizeof section_names);
	Elf64_Shdr *sections = (Elf64_Shdr *)(file + sections_at);
	sections[1] = (Elf64_Shdr){1, SHT_PROGBITS, SHF_ALLOC | SHF_EXECINSTR, CODE, CODE, CODE, 0, 0, 16, 0};
	sections[2] = (Elf64_Shdr){7, SHT_DYNSYM, SHF_ALLOC, 0, symbols_at, names_at - symbols_at, 3, 1, 8, sizeof(Elf64_Sym)};
	sections[3] = (Elf64_Shdr){15, SHT_STRTAB, SHF_ALLOC, 0, names_at, names, 0, 0, 1, 0};
	sections[4] = (Elf64_Shdr){23, SHT_STRTAB, 0, 0, section_names_at, sizeof section_names, 0, 0, 1, 0};
	int fd = open(argv[1], O_RDWR | O_CREAT | O_TRUNC, 0755);
	for (size_t done = 0; done < len;) {
		ssize_t n = write(fd, file + done, len - done);
		if (n <= 0)
			return 1;
		done += n;
	}
	free(file);
	if (mmap(NULL, 2 * CODE, PROT_READ | PROT_EXEC, MAP_PRIVATE, fd, 0) == MAP_FAILED)
		return 1;
	puts("mapped");
	fflush(stdout);
	for (;;)
		pause();
}
