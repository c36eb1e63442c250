# fish completion for tapedeck(1)
# SPDX-License-Identifier: MIT

# The command on the line, or nothing.
function __tapedeck_command
    set -l words (commandline -opc)
    for word in $words[2..-1]
        string match -q -- '-*' $word
        or begin
            contains -- $word run info show diff leaks ranks eval recompute weights serve cat export import check
            and echo $word
            return
        end
    end
end

function __tapedeck_is
    contains -- (__tapedeck_command; or true) $argv
end

function __tapedeck_has_none
    test -z "$(__tapedeck_command)"
end

function __tapedeck_is_first
    test (count (commandline -opc)) -eq 1
end

# Files whose names end so, then all others.
function __tapedeck_files
    set -l files (__fish_complete_path (commandline -ct) | string replace -r '\t.*' '')
    for suffix in $argv
        string match -- "*$suffix" $files
    end
    printf '%s\n' $files
end

complete -c tapedeck -l help
complete -c tapedeck -n __tapedeck_has_none -l version

complete -c tapedeck -n __tapedeck_is_first -a run -d 'record a model'
complete -c tapedeck -n __tapedeck_is_first -a info -d 'what is on a tape, or in a model of another program'
complete -c tapedeck -n __tapedeck_is_first -a show -d 'a view of a tape as text, picture or data'
complete -c tapedeck -n __tapedeck_is_first -a diff -d 'structure and numbers of two iterations'
complete -c tapedeck -n __tapedeck_is_first -a leaks -d 'what grows and who holds it'
complete -c tapedeck -n __tapedeck_is_first -a ranks -d 'where the ranks of one run part'
complete -c tapedeck -n __tapedeck_is_first -a eval -d 'one operation on arrays, and its gradients'
complete -c tapedeck -n __tapedeck_is_first -a recompute -d 'an iteration again, with all its values'
complete -c tapedeck -n __tapedeck_is_first -a weights -d 'weights of PyTorch under our names'
complete -c tapedeck -n __tapedeck_is_first -a serve -d 'answer requests over HTTP with a model'
complete -c tapedeck -n __tapedeck_is_first -a cat -d 'the records of a tape as text or JSON lines'
complete -c tapedeck -n __tapedeck_is_first -a export -d 'memory for other programs to read'
complete -c tapedeck -n __tapedeck_is_first -a import -d 'a snapshot, a trace or a reference as a tape'
complete -c tapedeck -n __tapedeck_is_first -a check -d 'is a tape whole'

# -r: a file follows; -x: something follows that is no file.
complete -c tapedeck -n '__tapedeck_is run' -s o -l tape -r
complete -c tapedeck -n '__tapedeck_is diff ranks show eval recompute weights export import' -s o -r
complete -c tapedeck -n '__tapedeck_is run recompute import' -s f
complete -c tapedeck -n '__tapedeck_is run recompute' -l quiet
complete -c tapedeck -n '__tapedeck_is recompute import' -l progress
complete -c tapedeck -n '__tapedeck_is info diff leaks ranks cat' -l json
complete -c tapedeck -n '__tapedeck_is show ranks' -l theme -x -a 'light dark high-contrast chainer'
complete -c tapedeck -n '__tapedeck_is ranks show recompute export' -l iteration -x
complete -c tapedeck -n '__tapedeck_is run cat' -l iterations -x

complete -c tapedeck -n '__tapedeck_is run' -l level -x -a 'graph stats values'
complete -c tapedeck -n '__tapedeck_is run' -l device -x -a 'cpu cuda cuda:0 null'
complete -c tapedeck -n '__tapedeck_is run' -l static -x -a 'auto as-is off verify verify='
complete -c tapedeck -n '__tapedeck_is run' -l on-hang -x -a 'abort stuck stop'
complete -c tapedeck -n '__tapedeck_is run' -l break -x -a 'error nan inf'
complete -c tapedeck -n '__tapedeck_is run' -l hosts -r
complete -c tapedeck -n '__tapedeck_is run' -l window
complete -c tapedeck -n '__tapedeck_is run' -s n -l ranks -x
for option in tape-budget tape-rate values-budget keyframes runs-budget mem-limit seed hang-after input size
    complete -c tapedeck -n '__tapedeck_is run' -l $option -x
end

complete -c tapedeck -n '__tapedeck_is info' -l oom

complete -c tapedeck -n '__tapedeck_is diff' -l by -x -a 'structure layer'
complete -c tapedeck -n '__tapedeck_is diff' -l rtol -x
complete -c tapedeck -n '__tapedeck_is diff' -l atol -x
complete -c tapedeck -n '__tapedeck_is diff' -l names -r
complete -c tapedeck -n '__tapedeck_is diff' -l names-out -r
complete -c tapedeck -n '__tapedeck_is diff' -l stacks

complete -c tapedeck -n '__tapedeck_is leaks' -l by -x -a 'holder site'

complete -c tapedeck -n '__tapedeck_is ranks' -l view -x -a 'lanes ladder matrix'
complete -c tapedeck -n '__tapedeck_is ranks' -l format -x -a 'text json svg png pdf'

complete -c tapedeck -n '__tapedeck_is show' -l view -x -a 'graph backward curves memory blocks holders growth retained what-if gradients findings ridge schedule explain timeline flame tensor origin'
complete -c tapedeck -n '__tapedeck_is show' -l format -x -a 'text json dot svg png pdf csv npy folded'
complete -c tapedeck -n '__tapedeck_is show' -l by -x -a 'holder site time bytes peak end bytes-time'
complete -c tapedeck -n '__tapedeck_is show' -l against -r
complete -c tapedeck -n '__tapedeck_is show' -l discarded
complete -c tapedeck -n '__tapedeck_is show' -l fit -x
for option in event node fold function newest range rules recompute schedule
    complete -c tapedeck -n '__tapedeck_is show' -l $option -x
end
for option in scale width height
    complete -c tapedeck -n '__tapedeck_is show ranks' -l $option -x
end

complete -c tapedeck -n '__tapedeck_is eval' -l in -r
complete -c tapedeck -n '__tapedeck_is eval' -l gy -r
complete -c tapedeck -n '__tapedeck_is eval' -l attr -x
complete -c tapedeck -n '__tapedeck_is eval' -l check
complete -c tapedeck -n '__tapedeck_is eval' -l list
complete -c tapedeck -n '__tapedeck_is eval' -l list-onnx
complete -c tapedeck -n '__tapedeck_is eval' -a "(tapedeck eval --list 2>/dev/null | string replace -rf ' \(.*' '')"

for option in host port batch deadline queue max-body timeout connections threads record-slow
    complete -c tapedeck -n '__tapedeck_is serve' -l $option -x
end
complete -c tapedeck -n '__tapedeck_is serve' -l record -r

complete -c tapedeck -n '__tapedeck_is weights' -l into -r
complete -c tapedeck -n '__tapedeck_is weights' -l for -r
complete -c tapedeck -n '__tapedeck_is weights' -l table -r
complete -c tapedeck -n '__tapedeck_is weights' -l by-order
complete -c tapedeck -n '__tapedeck_is weights' -l dry-run

complete -c tapedeck -n '__tapedeck_is export' -l format -x -a 'chrome perfetto torch-snapshot'
complete -c tapedeck -n '__tapedeck_is export' -l device -x

complete -c tapedeck -n '__tapedeck_is check' -l repair -r

# Files of the right name come first; any other can be one, too.
complete -c tapedeck -n '__tapedeck_is serve' -k -a '(__tapedeck_files .onnx)'
complete -c tapedeck -n '__tapedeck_is weights' -k -a '(__tapedeck_files .npz .safetensors)'
complete -c tapedeck -n '__tapedeck_is import' -k -a '(__tapedeck_files .pickle .json .json.gz .npz)'
complete -c tapedeck -n '__tapedeck_is check' -k -a '(__tapedeck_files .tdtape)'
complete -c tapedeck -n '__tapedeck_is info show' -k -a '(__tapedeck_files .tdtape .onnx .pickle .json .json.gz .npz)'
complete -c tapedeck -n '__tapedeck_is diff leaks recompute cat export' -k -a '(__tapedeck_files .tdtape .pickle .json .json.gz .npz)'
