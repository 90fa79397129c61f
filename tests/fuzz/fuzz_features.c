/* SPDX-License-Identifier: Apache-2.0 */
/* The features structure. */
#define DOCUMENT               features
#define ENCODE(object, a, len) oci_features_encode(object, true, a, len)
#include "tests/fuzz/fuzz_document.h"
