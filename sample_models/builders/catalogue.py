"""The fifty models of Table 1 of the DLBricks paper: which file holds each, and who builds it."""
