"""Kernels for CUDA devices: C++ sources, compiled on the user's machine by NVRTC when a CUDA tensor first needs them.

To add a kernel:

1. Write it into a ``.cu`` file under ``sources/`` as ``KERNEL name(...)`` at the start of a line, all arguments 64 bits
   wide (``long long``, ``double``, pointers), the name unique among all files; what files share goes into a header.
2. Count threads by ``block.cuh`` (``thread()``, ``lane()``, ``WARP``, ...): right for any number of warps, results the
   same bits whatever that number and the batch. The one shared memory is ``shared_memory``; ``block_memory`` takes the
   work area in global memory instead. All threads reach every ``__syncthreads``.
3. Launch it from a Python file of the family: a function of tensors and a ``Launcher``, which allocates its results,
   asks ``Launcher`` for its limits and never syncs with the device: ``launcher.launch("NAME", shape, scores, 3, ...)``.
4. Have ``trees/families/on_cuda.py`` call that function, and test it by the emulator (``tests/helpers/emulator``):
   the same sources, run on the CPU; what CUDA functions it lacks are added there. ``check_device_sources.py``
   in ``scripts/checks`` runs all kernels under ThreadSanitizer and compiles them for several architectures.
"""
