"""Labeling in several processes of this machine, without a scheduler.

The parent reads the rows, sends each to a worker, and passes the outcomes on in the order of the
rows. A worker asks about its rows exactly as one process does. All of them save to one store, whose
leases keep two from asking for the same label, and take budget and rates from the quota server of
:mod:`labeler.integrations.ray.quotas`. Rows with the same question and response go to the same
worker, so that even a failure is paid for once.

A worker ends with its parent, however that ends: nothing more is sent, and answers that are paid
for are saved.
"""
