// A static probe whose provider, name and argument would act on a terminal that shows them as they are.
int main(void)
{
	__asm__ volatile("990:\tnop\n"
			 "\t.pushsection .note.stapsdt,\"\",\"note\"\n"
			 "\t.balign 4\n"
			 "\t.4byte 992f-991f, 994f-993f, 3\n"
			 "991:\t.asciz \"stapsdt\"\n"
			 "992:\t.balign 4\n"
			 "993:\t.8byte 990b, _.stapsdt.base, 0\n"
			 "\t.asciz \"prov\\033[31m\", \"name\\nevil\\342\\200\\256\", \"8@((((((\\033]0;x\\007\"\n"
			 "994:\t.balign 4\n"
			 "\t.popsection\n"
			 "\t.pushsection .stapsdt.base,\"aG\",\"progbits\",.stapsdt.base,comdat\n"
			 "\t.weak _.stapsdt.base\n"
			 "\t.hidden _.stapsdt.base\n"
			 "_.stapsdt.base:\t.space 1\n"
			 "\t.popsection\n");
	return 0;
}
