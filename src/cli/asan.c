/* SPDX-License-Identifier: Apache-2.0 */
/*
 * cli: what AddressSanitizer builds are to do by default. Podman and conmon start the runtime with
 * an environment of their own, so this cannot be left to ASAN_OPTIONS.
 *
 * No look for leaks at exit: the program ends with its arenas; and LeakSanitizer's helper is
 * born into the pid namespace that `exec` has entered for its children, where it waits for ever.
 */
const char *__asan_default_options(void);

const char *__asan_default_options(void)
{
	return "detect_leaks=0";
}
