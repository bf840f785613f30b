# ABX_TRY_CFLAGS(VARIABLE, FLAGS): append to VARIABLE each of FLAGS that the compiler takes without a warning.
AC_DEFUN([ABX_TRY_CFLAGS], [
  for abx_flag in m4_normalize([$2]); do
    AC_MSG_CHECKING([whether $CC takes $abx_flag])
    abx_saved_cflags=$CFLAGS
    CFLAGS="$CFLAGS -O2 -Werror $abx_flag"
    AC_COMPILE_IFELSE([AC_LANG_PROGRAM([[#include <string.h>]], [[char b[8]; memset(b, 0, sizeof(b)); return b[0];]])],
      [AC_MSG_RESULT([yes]); $1="${$1} $abx_flag"], [AC_MSG_RESULT([no])])
    CFLAGS=$abx_saved_cflags
  done
  AC_SUBST([$1])
])

# ABX_TRY_LDFLAGS(VARIABLE, FLAGS): the same for the linker.
AC_DEFUN([ABX_TRY_LDFLAGS], [
  for abx_flag in m4_normalize([$2]); do
    AC_MSG_CHECKING([whether the linker takes $abx_flag])
    abx_saved_ldflags=$LDFLAGS
    abx_saved_cflags=$CFLAGS
    LDFLAGS="$LDFLAGS $abx_flag"
    CFLAGS="$CFLAGS $HARDEN_CFLAGS"
    AC_LINK_IFELSE([AC_LANG_PROGRAM([], [])],
      [AC_MSG_RESULT([yes]); $1="${$1} $abx_flag"], [AC_MSG_RESULT([no])])
    LDFLAGS=$abx_saved_ldflags
    CFLAGS=$abx_saved_cflags
  done
  AC_SUBST([$1])
])

# ABX_FUZZER: FUZZER_FLAGS, and the conditional HAVE_LIBFUZZER.
AC_DEFUN([ABX_FUZZER], [
  AC_MSG_CHECKING([whether $CC has libFuzzer])
  abx_saved_cflags=$CFLAGS
  CFLAGS="$CFLAGS -fsanitize=fuzzer"
  AC_LINK_IFELSE([AC_LANG_SOURCE([[
    #include <stddef.h>
    int LLVMFuzzerTestOneInput(const unsigned char *d, size_t n) { (void)d; (void)n; return 0; }]])],
    [abx_have_fuzzer=yes], [abx_have_fuzzer=no])
  CFLAGS=$abx_saved_cflags
  AC_MSG_RESULT([$abx_have_fuzzer])
  AM_CONDITIONAL([HAVE_LIBFUZZER], [test "x$abx_have_fuzzer" = xyes && test "x$enable_sanitizers" = xyes])
])
