/* SPDX-License-Identifier: Apache-2.0 */
/* inject -m counts a program's calls between close(FAULTS_ON) and close(FAULTS_OFF) only. */
#ifndef LR_TESTS_FAULTS_MARKS_H
#define LR_TESTS_FAULTS_MARKS_H

enum { FAULTS_ON = -1717, FAULTS_OFF = -1718 };

#endif
