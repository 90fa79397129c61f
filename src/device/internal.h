/* SPDX-License-Identifier: Apache-2.0 */
/* device: what its files share among themselves. */
#ifndef LR_DEVICE_INTERNAL_H
#define LR_DEVICE_INTERNAL_H

#include "src/device/device.h"

/* An empty file to bind d on, as an O_PATH descriptor; LR_NOFD: the device is there already. */
int lr_device_target(int dirfd, const struct lr_device *d, int *ret,
		     struct lr_err *err) LR_MUST_CHECK;

#endif
