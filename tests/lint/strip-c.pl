#!/usr/bin/perl
# SPDX-License-Identifier: Apache-2.0
# Print C files as "path:line:text" with comments blank and string literals empty.
use strict;
use warnings;

for my $path (@ARGV) {
	open(my $in, '<', $path) or die "cannot open $path: $!\n";
	my $text = do { local $/; <$in> };
	close($in);
	$text =~ s{(/\*.*?\*/|//[^\n]*)|("(?:\\.|[^"\\\n])*"|'(?:\\.|[^'\\\n])*')}{
		my ($comment, $literal) = ($1, $2);
		my $kept = defined $comment ? $comment : '""';
		$kept =~ s/[^\n]+//g if defined $comment;
		$kept;
	}gsex;
	my $number = 0;
	for my $line (split(/\n/, $text, -1)) {
		$number++;
		print "$path:$number:$line\n" if $line =~ /\S/;
	}
}
