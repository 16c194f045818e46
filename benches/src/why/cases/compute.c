//: what A program that computes for a second in its own code.
//: healthy
#include "shared.h"

int main(void)
{
	spin(1000 * MS);
	return 0;
}
