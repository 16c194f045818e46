/* A sound stack between those that are not. */
#ifndef SOUND_H
#define SOUND_H

#include "chains.h"

static NOIPA void sound_inner(long turn)
{
	EVENT(HOSTILE, turn);
	AFTER();
}

static NOIPA void sound_outer(long turn)
{
	sound_inner(turn);
	AFTER();
}

#endif
