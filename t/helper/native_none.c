/* A shared object that has no commands. */
extern int nothing;
int nothing = 1;
