/* SPDX-License-Identifier: Apache-2.0 */
/* The file of exec --process. */
#define DOCUMENT               process
#define ENCODE(object, a, len) oci_process_encode(object, a, len)
#include "tests/fuzz/fuzz_document.h"
