sched timehist --format json sched.tape
