// Chains of C++ functions: templates, virtual functions, lambdas, destructors that run while an exception flies.
#include "chains.h"

namespace shapes {

struct Shape {
	virtual ~Shape() = default;
	virtual long area(long turn) = 0;
};

template <typename T> struct Box : Shape {
	T side{3};
	NOIPA long area(long turn) override
	{
		EVENT(TEMPLATE, turn);
		return long(side * side);
	}
};

template <typename F> NOIPA void for_each(long n, F f)
{
	for (long i = 0; i < n; i++)
		f(i);
	AFTER();
}

struct Guard {
	long turn;
	NOIPA ~Guard()
	{
		EVENT(DESTRUCTOR, turn);
	}
};

NOIPA void thrower(long turn)
{
	Guard guard{turn};

	throw turn;
}

NOIPA void catcher(long turn)
{
	try {
		thrower(turn);
	} catch (long) {
		AFTER();
	}
}

NOIPA long measure(Shape &shape, long turn)
{
	long area = shape.area(turn);

	AFTER();
	return area;
}

} // namespace shapes

int main()
{
	shapes::Box<double> box;

	shapes::for_each(TIMES, [&box](long i) __attribute__((noipa)) {
		shapes::measure(box, i);
		AFTER();
	});
	shapes::for_each(TIMES, [](long i) __attribute__((noipa)) { EVENT(LAMBDA, i); });
	for (long i = 0; i < TIMES; i++)
		shapes::catcher(i);
	return 0;
}
